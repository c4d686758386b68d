#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/device/device_tools.h"
#include "harness/device/problem_buffers.h"
#include "harness/evaluation/evaluation.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Why a candidate does not pass.
struct Rejection {
  Status status = Status::wrong_result;
  std::string message;
};

/// An invariant of the problem, compiled.
struct CompiledInvariant {
  const Invariant* invariant = nullptr;
  CompiledProgram compiled;
};

/// Judges what is in a problem's output buffer after a run. The truth is computed after the run
/// that it judges and destroyed afterwards, so that no kernel can find it in device memory.
class Checker {
 public:
  /// Keeps references to all but the compiled programs. Throws CudaError when memory is short.
  Checker(const Problem& problem, const ProblemBuffers& buffers, const DeviceTools& tools,
          const CompiledProgram& oracle, const std::vector<CompiledInvariant>& invariants,
          const DeviceProperties& device, const Stream& stream);

  /// Guard bands, unchanged inputs, then the values, in this order. `stats` is set when the values
  /// were compared. Leaves the output in place.
  std::optional<Rejection> judge(std::uint64_t seed, const StressCase* stress,
                                 std::optional<ErrorStats>* stats);

  /// Errors of the output that a reference wrote for the inputs that are in place.
  ErrorStats measure_errors();

 private:
  void compute_truth();
  std::optional<Rejection> judge_values(const ErrorStats& stats, const StressCase* stress);
  std::optional<Rejection> judge_invariants();

  const Problem& problem_;
  const ProblemBuffers& buffers_;
  const DeviceTools& tools_;
  const Stream& stream_;
  DeviceBuffer truth_;
  std::vector<DeviceBuffer> oracle_workspaces_;
  DeviceBuffer violation_;
  std::unique_ptr<Runnable> oracle_;
  std::vector<std::pair<const Invariant*, std::unique_ptr<Runnable>>> invariants_;
};

}  // namespace rekernel
