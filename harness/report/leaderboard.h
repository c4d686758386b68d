#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/records/standings.h"
#include "harness/report/filters.h"
#include "ops/result.h"

namespace rekernel {

/// By the kernels that are there and by this program's judge: "the kernel changed since", "the
/// kernel is gone".
Staleness staleness_by(const std::vector<Candidate>& candidates);

/// A best time as it stood from a commit on; the time is the last one measured of that kernel.
struct BestTime {
  std::string date;  ///< of the commit, YYYY-MM-DD
  std::string commit;
  std::string kernel;
  std::int64_t median_ns = 0;
  std::string sha256;  ///< of its content; empty in older records
};

/// The kernels that brought a problem's best time of a device's record down, from the history of
/// the repository, the oldest first. Empty without git; in a shallow clone, as far as it goes.
std::vector<BestTime> history_of_best(const std::filesystem::path& root,
                                      const std::filesystem::path& bench,
                                      const std::string& problem);

/// The ranks on every device as Markdown, each with its history: of the rows that are taken.
Result<std::string> leaderboard_markdown(const std::filesystem::path& root, const Filters& filters);

}  // namespace rekernel
