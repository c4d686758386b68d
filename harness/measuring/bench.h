#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/records/record.h"

namespace rekernel {

struct BenchOptions {
  int samples = 60;
  std::vector<int> devices = {0};  ///< one candidate at a time on each
  bool pytorch = false;
  bool compiled_pytorch = true;  ///< where PyTorch is timed: compiled as well as eager
  /// What rows without any reference say where PyTorch is not timed.
  std::string without_pytorch = "PyTorch was not timed";
  /// Takes all rows so far whenever one more is measured; its error ends the run.
  std::function<Result<Ok>(const Bench&)> arrived;
};

/// Judges and times each candidate against all references of its problem on the same GPU, one
/// isolated process each. An error means that the machine could not do it; a candidate's own
/// failure is its row's status.
Result<Bench> run_bench(const std::vector<Candidate>& candidates, const BenchOptions& options);

/// Merges `bench` into results/<gpu>/bench.json, or another file there, and returns its path.
Result<std::filesystem::path> record_bench(const std::filesystem::path& root, const Bench& bench,
                                           const char* file = "bench.json");

}  // namespace rekernel
