#include "replay/evaluator/pool_evaluator.h"

#include <boost/json.hpp>

#include "replay/trajectory/outcome.h"

namespace rekernel {
namespace {

using Kind = Interruption::Kind;

Interruption waiting_for_workers(std::size_t count, const std::string& why) {
  return {Kind::waiting,
          std::to_string(count) + (count == 1 ? " candidate waits" : " candidates wait") +
              " for a GPU (" + why + "); run the same command on a machine with one"};
}

}  // namespace

std::vector<PoolWorker> gpu_workers(const std::vector<int>& ordinals,
                                    const EvaluateOptions& evaluate, const Judge& judge) {
  std::vector<PoolWorker> workers;
  for (const int ordinal : ordinals) {
    EvaluateOptions own = evaluate;
    own.device = ordinal;
    workers.push_back({"GPU " + std::to_string(ordinal),
                       [own, judge](const Candidate& candidate) { return judge(candidate, own); }});
  }
  return workers;
}

/// The verdict of the compiler alone, if it rejects the candidate.
std::optional<EvaluationReport> PoolEvaluator::prepare(const Candidate& candidate) const {
  const auto [major, minor] = capability_of(options_.target).value_or(ComputeCapability{});
  if (!options_.compile || !runs_on(candidate.arch, major, minor)) return std::nullopt;
  const std::optional<CompileVerdict> verdict = options_.compile(candidate);
  if (!verdict) return std::nullopt;
  EvaluationReport report;
  report.evaluation.problem = candidate.problem;
  report.evaluation.kernel = candidate.name;
  report.evaluation.sha256 = candidate_sha256(candidate);
  report.evaluation.status = verdict->status;
  report.evaluation.message = verdict->message;
  report.evaluation.target = options_.target;
  return report;
}

/// An evaluation on a GPU that the search does not write for is none.
EvaluationReport PoolEvaluator::checked(EvaluationReport report) const {
  const std::string& target = report.evaluation.target;
  if (report.failure.empty() && !target.empty() && target != options_.target) {
    report.failure = "the search writes code for " + options_.target + ", this GPU is " + target;
  }
  return report;
}

std::optional<Interruption> PoolEvaluator::evaluate(std::span<const EvaluationRequest> requests,
                                                    const Arrived& arrived) {
  std::string nobody;
  if (!pool_) {
    Result<std::vector<PoolWorker>> workers = options_.workers();
    if (!workers) nobody = workers.error().message;
    std::vector<PoolWorker> present;
    if (workers) present = std::move(*workers);
    for (PoolWorker& worker : present) {
      worker.evaluate = [this, own = std::move(worker.evaluate)](const Candidate& candidate) {
        return checked(own(candidate));
      };
    }
    pool_ = std::make_unique<EvaluationPool>(std::move(present), options_.pool);
  }
  if (options_.expect_candidates) options_.expect_candidates();
  PoolTask task;
  for (const EvaluationRequest& request : requests) {
    task.candidates.push_back(request.candidate);
    task.ids.push_back(request.id);
  }
  task.prepare = [&](std::size_t index) { return prepare(*requests[index].candidate); };
  task.preparers = options_.compilations;
  task.settle = [&](std::size_t index, const EvaluationReport& report) {
    const std::string device = report.device ? report.device->name : "";
    const std::string& toolchain = report.toolchain.empty() ? options_.toolchain : report.toolchain;
    const bool goes_on = arrived(index, recorded_evaluation(report.evaluation, device, toolchain));
    if (goes_on && options_.settled) options_.settled(*requests[index].candidate);
    return goes_on;
  };
  std::vector<std::size_t> unsettled;
  auto interruption = pool_->run(task, unsettled);
  if (!unsettled.empty()) {
    pool_.reset();  // a later round may find one
    return waiting_for_workers(unsettled.size(), nobody);
  }
  return interruption;
}

std::optional<Interruption> PoolEvaluator::profile(const EvaluationRequest& request,
                                                   ProfileRecord& profile) {
  if (!options_.profile) return Evaluator::profile(request, profile);
  Result<ProfileRecord> made = options_.profile(*request.candidate);
  if (!made) {
    return Interruption{Kind::waiting, request.id +
                                           " waits for a profiler: " + made.error().message +
                                           "; run the same command where there is one"};
  }
  profile = std::move(*made);
  return std::nullopt;
}

}  // namespace rekernel
