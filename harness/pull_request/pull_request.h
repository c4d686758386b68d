#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/pull_request/rules.h"
#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

struct PullRequestOptions {
  std::string base;
  /// Whether the candidate is judged and timed here; automatic: where there is a GPU.
  enum class Gpu { automatic, on, off } gpu = Gpu::automatic;
  int device = 0;
};

/// Everything that is found out about a pull request.
struct PullRequestFindings {
  std::string base;    ///< the commit that it is compared with
  std::string commit;  ///< HEAD, which is judged
  std::vector<PullRequestComplaint> complaints;
  std::vector<std::string> left;  ///< what its author has still to do, a line each
  std::string folder;             ///< of the candidate; empty if it brings none, or several
  std::optional<Candidate> candidate;
  std::vector<ResourceUse> uses;
  std::optional<BenchRow> measured;        ///< the candidate on this machine's GPU
  std::string measured_on;                 ///< that GPU's name
  std::optional<std::string> base_record;  ///< that GPU's record in the base

  bool passed() const;
};

/// Judges HEAD, not the work tree, as a pull request onto a commit. What is not committed is named.
/// A candidate that was measured and passed is recorded in the work tree. An error means that it
/// could not be judged.
Result<PullRequestFindings> examine_pull_request(const std::filesystem::path& root,
                                                 const PullRequestOptions& options);

}  // namespace rekernel
