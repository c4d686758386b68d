#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/device/own_program.h"
#include "harness/evaluation/judgement.h"
#include "harness/evaluation/truth.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// An invariant of the problem, compiled.
struct CompiledInvariant {
  const Invariant* invariant = nullptr;
  CompiledProgram compiled;
};

/// An output's values against its float64 truth: elements outside the tolerance, and on the
/// problem's own inputs (not on stress inputs, where the scaled tolerance has decided) the bounds
/// relative to the size of the results. Pure.
std::optional<Rejection> judge_values(const ErrorStats& stats, const Problem& problem,
                                      const Tensor& output, const StressCase* stress);

/// The part of judge_values about the size of the results. A truth of zeros asks for zeros. Pure.
std::optional<Rejection> judge_sizes(const ErrorStats& stats, const Tolerance& tolerance);

/// Several outputs' errors in one, `stats` in their order: failing and unwritten elements of all,
/// the first failing one of the first output that has one, the worst ratios, and the errors of that
/// output which is worst beside the tolerance's bounds on them. Pure.
ErrorStats combined(const std::vector<ErrorStats>& stats, const Tolerance& tolerance);

/// How much of what `strict` allows an output's errors take: of 1e-4 + 1e-4·|truth|, or of twice
/// the FP32 library's own errors on the same inputs, whichever is less; a null `library` leaves
/// that out. `strict` holds up to 1. Pure.
double strict_share(const ErrorStats& stats, const ErrorStats* library);

/// Judges snapshots of what a subject wrote. The truth is computed after the run that it judges,
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

  /// The definition's program, compiled, or a channel to the process of the program that the
  /// problem has in its place.
  struct TruthSource {
    const CompiledProgram* oracle = nullptr;
    Channel* program = nullptr;
  };

  /// Keeps references to all but the compiled programs. Throws CudaError when memory is short, and
  /// SetupFailure where there is no truth.
  Checker(const Problem& problem, const InputBuffers& inputs, const DeviceTools& tools,
          const TruthSource& truth, const std::vector<CompiledInvariant>& invariants,
          const DeviceProperties& device, const Stream& stream);

  /// Who draws inputs that the problem's program draws; empty where a definition gives the truth.
  InputBuffers::ProgramDraws program_draws() const;

  /// Where the outputs of a run are put to be judged, by name.
  const Bindings& snapshots() const { return snapshots_; }

  /// The surroundings of what the subject could write to, then the values, in this order.
  Judgement judge(const SubjectBuffers& subject, const StressCase* stress);

  /// Errors of the snapshots for the inputs that are in place.
  ErrorStats measure_errors();

  /// Equal snapshots of one evaluation have equal digests; nobody can foresee them.
  std::uint64_t digest() const;

 private:
  /// An output of the problem in memory.
  struct Judged {
    const Tensor* tensor;
    DeviceBuffer snapshot;
    BufferView truth;

    BufferView snapshot_view() const { return {snapshot.get(), snapshot.bytes()}; }
  };

  /// A truth with a NaN, which no output could meet, is a failure but on stress inputs.
  void compute_truth(const StressCase* stress);
  /// Unless it is the truth of the next run as well.
  void destroy_truth();
  /// By which the absolute part of the tolerance is multiplied, for each output; nothing where a
  /// truth is not finite everywhere.
  std::optional<std::vector<double>> scales(const StressCase* stress) const;
  /// The errors of each output.
  std::vector<ErrorStats> compared(const std::vector<double>& scales) const;
  void judge_compared(const std::vector<double>& scales, const StressCase* stress,
                      Judgement& judgement) const;
  std::optional<Rejection> judge_invariants() const;

  const Problem& problem_;
  const DeviceTools& tools_;
  const Stream& stream_;
  Buffers truths_;
  std::vector<Judged> outputs_;
  Bindings snapshots_;
  bool inputs_stay_ = false;
  bool has_truth_ = false;
  DeviceBuffer violation_;
  std::uint64_t salt_;
  std::unique_ptr<Truth> truth_;
  std::vector<std::pair<const Invariant*, OwnProgram>> invariants_;
};

}  // namespace rekernel
