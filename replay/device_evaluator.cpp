#include "replay/device_evaluator.h"

#include <boost/json.hpp>
#include <mutex>
#include <thread>

#include "replay/outcome.h"
#include "replay/precompile.h"

namespace rekernel {
namespace {

using Kind = Interruption::Kind;

Evaluation rejected_by_compiler(const Candidate& candidate, const std::string& target,
                                const CompileVerdict& verdict) {
  Evaluation evaluation;
  evaluation.problem = candidate.problem;
  evaluation.kernel = candidate.name;
  evaluation.sha256 = candidate_sha256(candidate);
  evaluation.status = verdict.status;
  evaluation.message = verdict.message;
  evaluation.target = target;
  return evaluation;
}

/// The candidates that are left, handed out to one worker a GPU.
class Round {
 public:
  Round(const DeviceEvaluatorOptions& options, std::span<const EvaluationRequest> requests,
        std::vector<std::size_t> indices, const Evaluator::Arrived& arrived)
      : options_(options), requests_(requests), indices_(std::move(indices)), arrived_(arrived) {}

  std::optional<Interruption> run(int devices) {
    {
      std::vector<std::jthread> workers;
      for (int device = 0; device < devices; ++device) {
        workers.emplace_back([this, device] { work(device); });
      }
    }
    return std::move(interruption_);
  }

 private:
  void work(int device) {
    EvaluateOptions evaluate = options_.evaluate;
    evaluate.device = device;
    while (const auto index = take()) {
      EvaluationReport report;
      try {
        report = options_.judge(*requests_[*index].candidate, evaluate);
      } catch (const std::exception& error) {
        report.failure = error.what();
      }
      hand_in(*index, report);
    }
  }

  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ == indices_.size()) return std::nullopt;
    return indices_[next_++];
  }

  void hand_in(std::size_t index, const EvaluationReport& report) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    const Evaluation& evaluation = report.evaluation;
    std::string failure = report.failure;
    if (failure.empty() && !evaluation.target.empty() && evaluation.target != options_.target) {
      failure =
          "the search writes code for " + options_.target + ", this GPU is " + evaluation.target;
    }
    if (!failure.empty()) {
      stopped_ = true;
      interruption_ = Interruption{Kind::failed, "the evaluation of " + requests_[index].id +
                                                     " could not be made: " + failure};
      return;
    }
    const std::string device = report.device ? report.device->name : "";
    stopped_ = !arrived_(index, recorded_evaluation(evaluation, device, options_.toolchain));
  }

  const DeviceEvaluatorOptions& options_;
  std::span<const EvaluationRequest> requests_;
  std::vector<std::size_t> indices_;
  const Evaluator::Arrived& arrived_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  bool stopped_ = false;
  std::optional<Interruption> interruption_;
};

}  // namespace

std::optional<Interruption> DeviceEvaluator::evaluate(std::span<const EvaluationRequest> requests,
                                                      const Arrived& arrived) {
  const auto [major, minor] = capability_of(options_.target).value_or(ComputeCapability{});
  std::vector<const Candidate*> compiled;
  std::vector<std::size_t> compiled_index;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!runs_on(requests[i].candidate->arch, major, minor)) continue;
    compiled.push_back(requests[i].candidate);
    compiled_index.push_back(i);
  }
  const auto verdicts = precompile(compiled, options_.target, std::thread::hardware_concurrency());
  std::vector<bool> settled(requests.size(), false);
  for (std::size_t k = 0; k < verdicts.size(); ++k) {
    if (!verdicts[k]) continue;
    const std::size_t i = compiled_index[k];
    settled[i] = true;
    const Evaluation evaluation =
        rejected_by_compiler(*requests[i].candidate, options_.target, *verdicts[k]);
    if (!arrived(i, recorded_evaluation(evaluation, "", options_.toolchain))) return std::nullopt;
  }
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!settled[i]) left.push_back(i);
  }
  if (left.empty()) return std::nullopt;
  const Result<int> devices = options_.device_count();
  if (!devices) {
    const std::string many =
        std::to_string(left.size()) + (left.size() == 1 ? " candidate waits" : " candidates wait");
    return Interruption{Kind::waiting, many + " for a GPU (" + devices.error().message +
                                           "); run the same command on a machine with one"};
  }
  return Round(options_, requests, std::move(left), arrived).run(*devices);
}

}  // namespace rekernel
