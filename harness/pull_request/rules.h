#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/project/compile_all.h"
#include "harness/project/git.h"

namespace rekernel {

/// What is wrong with a file of a pull request, and what to do.
struct PullRequestComplaint {
  std::string file;
  std::string message;
};

/// What a pull request changes, sorted out.
struct PullRequestFiles {
  std::set<std::string> candidates;  ///< folders that are new: "generated/softmax/mine"
  std::set<std::string> trajectories;
  std::set<std::string> benches;  ///< results/*/bench.json
  std::set<std::string> pages;    ///< that people write: a problem's, a search's
  std::vector<PullRequestComplaint> complaints;
};

/// Which of the changed files may be there: those of one new candidate, its search, its result and
/// its page. `in_base`: the candidate folders of the base commit.
PullRequestFiles sort_out(const std::vector<ChangedFile>& changes,
                          const std::set<std::string>& in_base);

/// What a candidate may not do to a page that people wrote: change or remove lines, add HTML or
/// pictures. `before` is empty for a new one.
std::vector<std::string> page_complaints(const std::string& before, const std::string& now);

/// What a launch needs beside what a chip has: registers of a block, shared memory.
struct ResourceUse {
  std::string target;
  std::string kernel;
  int registers = 0;
  std::int64_t block_registers = 0;  ///< of the largest block that the plan launches
  std::int64_t shared_bytes = 0;     ///< static and dynamic
  std::int64_t shared_limit = 0;
  std::int64_t spill_bytes = 0;
};
inline constexpr std::int64_t registers_of_a_multiprocessor = 65536;

std::vector<ResourceUse> resource_uses(const Candidate& candidate,
                                       const std::vector<CompileCheck>& checks);
/// Those over a limit.
std::vector<PullRequestComplaint> over_limits(const std::string& file,
                                              const std::vector<ResourceUse>& uses);

/// Why the idea says nothing about this kernel, if so.
std::optional<std::string> placeholder_idea(const Candidate& candidate);

}  // namespace rekernel
