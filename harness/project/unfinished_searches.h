#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Whether a recorded search has not ended, or its file breaks off: the last line is not its stop.
bool is_unfinished(const std::filesystem::path& trajectory);

/// Names of all recorded searches, sorted.
std::vector<std::string> search_names(const std::filesystem::path& root);

/// Recorded searches, sorted. One's own unfinished ones, which nobody committed, are left out and
/// named in `left_out`; what is committed, or where there is no git to ask, is always there.
std::vector<std::filesystem::path> finished_trajectories(const std::filesystem::path& root,
                                                         std::vector<std::string>& left_out);

/// Keeps git from taking unfinished searches along, by trajectories/.gitignore: a file that names
/// itself and them with all that is theirs, and goes with the last of them. Nothing where there is
/// no git, or where somebody wrote that file.
Result<Ok> ignore_unfinished_searches(const std::filesystem::path& root);

}  // namespace rekernel
