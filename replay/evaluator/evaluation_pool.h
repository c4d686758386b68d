#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/report.h"
#include "replay/trajectory/interruption.h"

namespace rekernel {

/// Where one candidate at a time is evaluated: a GPU of this machine, or one of the places that a
/// launcher has for candidates.
struct PoolWorker {
  std::string name;  ///< "GPU 3", for messages
  /// Blocks until the candidate is evaluated. A report with a failure says nothing of the
  /// candidate.
  std::function<EvaluationReport(const Candidate&)> evaluate;
};

/// What a pool does with the candidates of a round.
struct PoolTask {
  std::vector<const Candidate*> candidates;
  std::vector<std::string> ids;
  /// What is known of a candidate without a worker (that it does not compile), by its index; called
  /// from `preparers` threads, fewer of them until workers wait for candidates. Candidates go to
  /// workers as soon as they are prepared.
  std::function<std::optional<EvaluationReport>(std::size_t index)> prepare;
  unsigned preparers = 1;
  /// Called once for every candidate, with its report, in any order but never twice at a time.
  /// False: stop.
  std::function<bool(std::size_t index, const EvaluationReport& report)> settle;
};

struct PoolOptions {
  /// Whether a failure tells something of the worker. GPUs differ; the places of a launcher do not,
  /// and a candidate that fails in one is not tried in another.
  bool workers_differ = true;
  /// Told, in a line, what became of a worker.
  std::function<void(const std::string&)> say;
  /// Asked after every failure: why no evaluation can be made any more, if so.
  std::function<std::optional<Interruption>()> trouble;
};

/// Workers that share the candidates of a round after round. A worker whose evaluation fails
/// pauses, and the candidate goes to another. If it succeeds there, the first worker leaves the
/// pool; where it fails again and again, it is set aside and the workers go on, each with one
/// failure to its name: the next one is its last. What was set aside, and a pool that ran out of
/// workers, end the round with an interruption, once everything else is settled.
class EvaluationPool {
 public:
  EvaluationPool(std::vector<PoolWorker> workers, PoolOptions options);

  /// Evaluates what is not settled by its preparation. Without any worker from the start, gives the
  /// indices of what is left in `unsettled`.
  std::optional<Interruption> run(const PoolTask& task, std::vector<std::size_t>& unsettled);

  std::size_t workers_left() const;

 private:
  class Round;
  struct Place {
    PoolWorker worker;
    bool suspected = false;  ///< failed, and it was not clear whose fault that was
    bool left = false;
  };

  std::vector<Place> places_;
  PoolOptions options_;
};

}  // namespace rekernel
