#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "harness/candidate/candidate.h"
#include "harness/gpu/choice.h"
#include "harness/process/tool.h"
#include "harness/profile/profile.h"
#include "ops/result.h"

namespace rekernel {

/// What stands in for starting a program, in tests.
using ToolRunner = std::function<Result<ToolOutcome>(const ToolCommand&)>;

/// A candidate's profile, or why this candidate has none.
struct Profiling {
  std::optional<Profile> profile;
  std::string unavailable;  ///< one line
};

/// Nsight Compute's command line (ncu, 2023.3 or newer), run on `rekernel evaluate DIR --once`
/// without the sandbox: one run in one process, on plain allocations, each launch of the candidate
/// repeated until everything is counted.
class NcuProfiler {
 public:
  /// Errors: no ncu on PATH, in a CUDA toolkit or where it is installed by itself.
  static Result<NcuProfiler> find(ToolRunner run = run_tool);
  /// `program`: its path. Errors: it does not tell its version.
  static Result<NcuProfiler> at(const std::string& program, ToolRunner run = run_tool);

  const std::string& version() const { return version_; }  ///< "Nsight Compute 2025.3.1.0"

  /// The error is of what keeps every candidate from being profiled here: the driver's permission,
  /// no GPU.
  Result<Profiling> profile(const Candidate& candidate, const VisibleGpu& gpu) const;

 private:
  struct Files;
  NcuProfiler(std::string program, ToolRunner run, std::string version)
      : program_(std::move(program)), run_(std::move(run)), version_(std::move(version)) {}

  Result<Profiling> count(const Candidate& candidate, const Candidate& renamed,
                          const VisibleGpu& gpu, const Files& files) const;
  Result<std::string> page(const Files& files, const std::vector<std::string>& options) const;
  void add_hottest(Profile& profile, const Candidate& candidate, const VisibleGpu& gpu,
                   const Files& files) const;

  std::string program_;
  ToolRunner run_;
  std::string version_;
};

/// What keeps ncu from counting, by what it wrote into its log; empty for a log without an error.
std::string ncu_complaint(const std::string& log);

}  // namespace rekernel
