#pragma once

#include <filesystem>
#include <vector>

#include "harness/terminal/tables.h"
#include "ops/result.h"
#include "replay/playback/replayer.h"

namespace rekernel {

/// The committed trajectories that stand beside a run published elsewhere, replayed exactly. The
/// error names a trajectory that does not replay.
Result<std::vector<ReplayedSearch>> published_runs(const std::filesystem::path& root);

/// Their round tables, each with its caption, as text for a terminal.
std::string published_runs_text(const std::vector<ReplayedSearch>& runs, const TableFormat& format);
/// The same as Markdown.
std::string published_runs_markdown(const std::vector<ReplayedSearch>& runs);

}  // namespace rekernel
