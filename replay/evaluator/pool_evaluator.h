#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/evaluation/launcher.h"
#include "ops/result.h"
#include "replay/evaluator/evaluation_pool.h"
#include "replay/evaluator/evaluator.h"
#include "replay/evaluator/precompile.h"

namespace rekernel {

/// A launcher's evaluate, or what stands in for it: blocks until a candidate is evaluated. Called
/// from one thread a worker.
using Judge = std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)>;

struct PoolEvaluatorOptions {
  std::string target;     ///< what the search writes code for; another GPU is refused
  std::string toolchain;  ///< recorded beside every evaluation that does not bring its own
  /// Who evaluates, or why nobody can. Asked once there is a candidate to evaluate.
  std::function<Result<std::vector<PoolWorker>>()> workers;
  /// Told before each round: candidates will come to the workers in a moment.
  std::function<void()> expect_candidates;
  PoolOptions pool;
  /// The compiler's verdict on a candidate that it rejects; nothing for the others, which are then
  /// in its cache. Called from several threads.
  std::function<std::optional<CompileVerdict>(const Candidate&)> compile;
  unsigned compilations = 1;  ///< at once
  /// What a profiler says of a candidate; the error is of what keeps every candidate from being
  /// profiled here. Empty where candidates are not profiled.
  std::function<Result<ProfileRecord>(const Candidate&)> profile;
  /// Told of each candidate once its record is kept.
  std::function<void(const Candidate&)> settled;
};

/// One worker for each of these GPUs of this machine.
std::vector<PoolWorker> gpu_workers(const std::vector<int>& ordinals,
                                    const EvaluateOptions& evaluate, const Judge& judge);

/// Evaluates rounds: candidates are compiled on the processor's cores, which settles those that do
/// not compile, and each goes to a worker as soon as it is compiled. Without a worker it settles
/// what it can and waits.
class PoolEvaluator : public Evaluator {
 public:
  explicit PoolEvaluator(PoolEvaluatorOptions options) : options_(std::move(options)) {}
  PoolEvaluator(const PoolEvaluator&) = delete;  // its workers know where it is
  PoolEvaluator& operator=(const PoolEvaluator&) = delete;
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override;
  std::optional<Interruption> profile(const EvaluationRequest& request,
                                      ProfileRecord& profile) override;

 private:
  std::optional<EvaluationReport> prepare(const Candidate& candidate) const;
  EvaluationReport checked(EvaluationReport report) const;

  PoolEvaluatorOptions options_;
  std::unique_ptr<EvaluationPool> pool_;
};

}  // namespace rekernel
