#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "harness/evaluation/launcher.h"
#include "ops/result.h"
#include "replay/evaluator.h"

namespace rekernel {

struct DeviceEvaluatorOptions {
  EvaluateOptions evaluate;  ///< `device` is set by the evaluator
  std::string target;        ///< what the search writes code for; another GPU is refused
  std::string toolchain;     ///< recorded beside every evaluation
  /// The number of GPUs, or why there is none. Asked after compilation.
  std::function<Result<int>()> device_count;
  /// A LocalLauncher, or a test's stand-in. Called from one thread a GPU.
  std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)> judge =
      [](const Candidate& candidate, const EvaluateOptions& evaluate) {
        return LocalLauncher().evaluate(candidate, evaluate);
      };
};

/// Evaluates a round on this machine: compiles everything on all cores, which settles what does not
/// compile, then judges and times the rest on all GPUs, one candidate at a time on each. Without a
/// GPU it settles what it can and waits.
class DeviceEvaluator : public Evaluator {
 public:
  explicit DeviceEvaluator(DeviceEvaluatorOptions options) : options_(std::move(options)) {}
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override;

 private:
  DeviceEvaluatorOptions options_;
};

}  // namespace rekernel
