#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/evaluation/report.h"
#include "harness/jobs/job_folder.h"
#include "harness/jobs/node_record.h"
#include "harness/jobs/slurm_batches.h"
#include "harness/jobs/slurm_client.h"
#include "harness/jobs/slurm_times.h"
#include "harness/jobs/submission_pace.h"
#include "ops/result.h"

namespace rekernel {

/// Candidates on their way through Slurm's queue: submitted, watched, submitted again, until each
/// has its result or will get none. For one thread.
class SlurmTasks {
 public:
  using Promise = std::promise<Result<EvaluationReport>>;  ///< an error: there is none

  /// All but `times` must outlive it. `trouble` is told why nothing can be submitted any more,
  /// before those who wait are.
  SlurmTasks(const JobFolder& folder, const SlurmClient& slurm, const JobOptions& options,
             const SlurmTimes& times, std::function<void(const std::string&)> trouble);

  /// Somebody waits for the candidate of this key.
  void add(const std::string& key, std::string candidate, Promise promise);
  /// Nodes see the folder: where several do not, the fault is theirs.
  void note_proven() { proven_ = true; }
  /// Takes the results that came, asks Slurm what became of the others if it is time for that, and
  /// submits what is to be submitted.
  void look();
  /// Cancels all jobs in the queue, and this one besides unless it is empty.
  void cancel_jobs(const std::string& besides);
  /// Ends every wait. Where jobs go on, whoever opens the folder again finds them.
  void end(const std::string& why, bool jobs_go_on);

 private:
  using Clock = std::chrono::steady_clock;

  struct Task {
    std::string candidate;  ///< its name
    std::vector<Promise> waiting;
    int tries = 0;                ///< jobs that ended without a result, pre-empted ones aside
    SlurmBatch* batch = nullptr;  ///< null: to be submitted
    std::size_t index = 0;
    std::int64_t restarts = 0;  ///< of the present job, by Slurm
    bool was_suspended = false;
    std::optional<Clock::time_point> over_since;
    SlurmTask ended;  ///< how, since then
  };
  using Tasks = std::map<std::string, Task>;

  void collect_results();
  void take_result(Tasks::iterator task, const JobResult& result);

  void query();
  void adopt();
  void settle_adopted(const std::vector<SlurmTask>& listed);
  void note_states(const std::vector<SlurmTask>& listed);
  void note_going_on(Task& task, const SlurmTask& listed);
  void note_end(Tasks::iterator task, const SlurmTask& ended);
  void give_up_waiting();
  void give_up(const std::string& why);

  void submit();
  bool submit_batch(std::size_t count);
  void take_back(SlurmBatch& batch);
  bool note_refusal(const std::string& message, SlurmBatch& batch);
  void end_submission(const std::string& message);

  void finish(Tasks::iterator task, const EvaluationReport& report);
  void fail(Tasks::iterator task, const std::string& why);
  void try_again(Tasks::iterator task, const std::string& why);
  void submit_again(Tasks::iterator task, const std::string& why);
  void detach(Task& task);
  void exclude(const std::string& node, const std::string& why);
  void say(const std::string& text) const;

  const JobFolder& folder_;
  const SlurmClient& slurm_;
  const JobOptions& options_;
  const SlurmTimes times_;
  const std::function<void(const std::string&)> trouble_;

  Tasks tasks_;
  std::set<std::string> waiting_;  ///< keys of tasks to submit
  SlurmBatches batches_;
  std::map<std::string, std::pair<SlurmBatch*, std::size_t>> adopted_;  ///< of an earlier run
  NodeRecord nodes_;
  SubmissionPace pace_;
  std::set<std::string> told_;  ///< reasons that jobs wait for
  bool proven_ = false;         ///< a result came, so nodes see the folder
  bool known_ = false;          ///< the queue was looked at once
  bool silent_ = false;         ///< the controller did not answer last time
  Clock::time_point next_query_;
};

}  // namespace rekernel
