#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/evaluation/rejection.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// An invariant of the problem, compiled.
struct CompiledInvariant {
  const Invariant* invariant = nullptr;
  CompiledProgram compiled;
};

/// Values against the float64 truth: elements outside the tolerance, and on the problem's own
/// inputs (not on stress inputs, where the scaled tolerance has decided) the bounds relative to the
/// size of the results. Pure.
std::optional<Rejection> judge_values(const ErrorStats& stats, const Problem& problem,
                                      const StressCase* stress);

/// How much of what `strict` allows an output's errors take: of 1e-4 + 1e-4·|truth|, or of twice
/// the FP32 library's own errors on the same inputs, whichever is less; a null `library` leaves
/// that out. `strict` holds up to 1. Pure.
double strict_share(const ErrorStats& stats, const ErrorStats* library);

/// Judges a snapshot of what a subject wrote. The truth is computed after the run that it judges,
/// in memory that no candidate's process has, and destroyed afterwards.
class Checker {
 public:
  /// As long as this is there, the inputs stay the same: their truth is computed once.
  class SameInputs {
   public:
    explicit SameInputs(Checker& checker) : checker_(checker) { checker_.inputs_stay_ = true; }
    SameInputs(const SameInputs&) = delete;
    SameInputs& operator=(const SameInputs&) = delete;
    ~SameInputs() {
      checker_.inputs_stay_ = false;
      checker_.destroy_truth();
    }

   private:
    Checker& checker_;
  };

  /// Keeps references to all but the compiled programs. Throws CudaError when memory is short.
  Checker(const Problem& problem, const InputBuffers& inputs, const DeviceTools& tools,
          const CompiledProgram& oracle, const std::vector<CompiledInvariant>& invariants,
          const DeviceProperties& device, const Stream& stream);

  /// Where the output of a run is put to be judged.
  BufferView snapshot() const { return {snapshot_.get(), snapshot_.bytes()}; }

  /// The surroundings of what the subject could write to, then the values, in this order. `stats`
  /// is set when the values were compared.
  std::optional<Rejection> judge(const SubjectBuffers& subject, const StressCase* stress,
                                 std::optional<ErrorStats>* stats);

  /// Errors of the snapshot for the inputs that are in place.
  ErrorStats measure_errors();

  /// Equal snapshots of one evaluation have equal digests; nobody can foresee them.
  std::uint64_t digest() const { return tools_.digest(snapshot(), salt_, stream_); }

 private:
  void compute_truth();
  /// Unless it is the truth of the next run as well.
  void destroy_truth();
  std::optional<Rejection> judge_invariants();

  const Problem& problem_;
  const DeviceTools& tools_;
  const Stream& stream_;
  DeviceBuffer snapshot_;
  DeviceBuffer truth_;
  bool inputs_stay_ = false;
  bool has_truth_ = false;
  std::vector<DeviceBuffer> oracle_workspaces_;
  DeviceBuffer violation_;
  std::uint64_t salt_;
  std::unique_ptr<Runnable> oracle_;
  std::vector<std::pair<const Invariant*, std::unique_ptr<Runnable>>> invariants_;
};

}  // namespace rekernel
