#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/evaluation/launcher.h"
#include "harness/jobs/job_folder.h"
#include "harness/jobs/slurm.h"
#include "ops/result.h"

namespace rekernel {

struct SlurmTimes {
  std::chrono::milliseconds look{1000};      ///< between two looks for results
  std::chrono::milliseconds query{10'000};   ///< between two questions to the controller
  std::chrono::milliseconds answer{30'000};  ///< that one of Slurm's commands may take
  std::chrono::milliseconds pause{5'000};    ///< behind a refusal; doubled up to longest_pause
  std::chrono::milliseconds longest_pause{60'000};
  std::chrono::milliseconds arrival{30'000};  ///< that a result may need behind its job's end
};

/// Evaluates candidates as tasks of Slurm's job arrays, one GPU each. Any number of threads may
/// wait in evaluate(); one thread of ours submits for all of them and looks for results.
///
/// A job that ends without a result is submitted anew, so many times; a pre-empted one as often as
/// it takes, and one that Slurm puts back into its queue is waited for. A full queue and a
/// controller that does not answer are waited for. Jobs outlive this process: whoever opens the
/// same folder again takes their results, waits for those that still run, and submits the rest.
class SlurmLauncher : public EvaluationLauncher {
 public:
  /// Fails where Slurm would never take such a job.
  static Result<std::unique_ptr<SlurmLauncher>> open(JobFolder folder, SlurmJobOptions slurm,
                                                     JobOptions options, SlurmTimes times);
  ~SlurmLauncher() override;
  SlurmLauncher(const SlurmLauncher&) = delete;
  SlurmLauncher& operator=(const SlurmLauncher&) = delete;

  /// Whether nodes see the folder and run the program, by a job of a minute that leaves word of it;
  /// asked once for a folder. An error says what is wrong. Where the queue is so long that the job
  /// has not run within `patience`, nobody knows: the first candidates will tell.
  Result<Ok> check_nodes(std::chrono::milliseconds patience);

  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override;
  /// Why nothing can be submitted any more, if so.
  std::optional<std::string> trouble() const;
  /// Whether the deadline ended its waits. Jobs go on.
  bool has_left() const;
  /// Cancels all jobs in the queue and ends all evaluations with a failure.
  void cancel();

 private:
  using Clock = std::chrono::steady_clock;
  using Promise = std::promise<Result<EvaluationReport>>;  ///< an error: there is none

  /// Jobs that were submitted together: the tasks of an array, or one job.
  struct Batch {
    std::string name;
    std::string job;                ///< empty while nobody knows whether it was submitted
    std::vector<std::string> keys;  ///< by the tasks' indices
    std::size_t open = 0;           ///< tasks that somebody waits for
  };
  struct Task {
    std::string candidate;  ///< its name
    std::vector<Promise> waiting;
    int tries = 0;           ///< jobs that ended without a result, pre-empted ones aside
    Batch* batch = nullptr;  ///< null: to be submitted
    std::size_t index = 0;
    std::int64_t restarts = 0;  ///< of the present job, by Slurm
    bool was_suspended = false;
    std::optional<Clock::time_point> over_since;
    SlurmTask ended;  ///< how, since then
  };
  struct Asked {
    std::string key;
    std::string candidate;  ///< its name
    Promise promise;
  };
  using Tasks = std::map<std::string, Task>;

  SlurmLauncher(JobFolder folder, SlurmJobOptions slurm, JobOptions options, SlurmTimes times);

  Result<Ok> check_tool(const char* name) const;
  std::string refusal_text(const std::string& message) const;
  std::string node_word() const;
  Result<std::optional<std::string>> watch_probe(const std::string& name,
                                                 std::chrono::milliseconds patience);

  void serve(const std::stop_token& stop);
  void take_asked();
  void collect_results();
  void query();
  void adopt();
  void settle_adopted(const std::vector<SlurmTask>& listed);
  void note_states(const std::vector<SlurmTask>& listed);
  void note_restarts(Task& task, const SlurmTask& listed);
  void note_end(Tasks::iterator task, const SlurmTask& ended);
  void give_up_waiting();
  void give_up(const std::string& why);
  void submit();
  bool submit_batch(std::size_t count);
  void take_back(Batch& batch);
  bool note_refusal(const std::string& message, Batch& batch);
  void end_submission(const std::string& message);
  void cancel_all();

  void finish(Tasks::iterator task, const EvaluationReport& report);
  void fail(Tasks::iterator task, const std::string& why);
  void try_again(Tasks::iterator task, const std::string& why);
  void submit_again(Tasks::iterator task, const std::string& why);
  void detach(Task& task);
  void exclude(const std::string& node, const std::string& why);
  static bool was_preempted(const Task& task, const std::set<std::string>& logs);
  std::string script_begin() const;
  std::string probe_script() const;
  std::string job_script(const std::string& batch) const;
  Result<std::string> ask_slurm(const std::vector<std::string>& arguments,
                                const std::string& input = {}) const;
  void say(const std::string& text) const;

  const JobFolder folder_;
  const SlurmJobOptions slurm_;
  const JobOptions options_;
  const SlurmTimes times_;

  mutable std::mutex mutex_;  ///< of what follows, up to the thread's own
  std::condition_variable_any changed_;
  std::vector<Asked> asked_;
  bool cancelling_ = false;
  bool closed_ = false;
  bool left_ = false;
  std::string trouble_;
  std::string probe_;  ///< the job of check_nodes, while it is in the queue

  // The thread's own.
  Tasks tasks_;
  std::set<std::string> waiting_;  ///< keys of tasks to submit
  std::list<Batch> batches_;
  std::map<std::string, std::pair<Batch*, std::size_t>> adopted_;
  std::map<std::string, std::string> excluded_;  ///< nodes, and why
  std::map<std::string, int> strikes_;           ///< failures of nodes since their last success
  std::set<std::string> told_;                   ///< reasons that jobs wait for
  bool proven_ = false;                          ///< a result came, so nodes see the folder
  bool known_ = false;                           ///< the queue was looked at once
  bool silent_ = false;                          ///< the controller did not answer last time
  std::size_t largest_array_;                    ///< that Slurm takes, as far as is known
  std::size_t largest_batch_;                    ///< that it takes now
  std::chrono::milliseconds pause_;
  int refusals_ = 0;  ///< in a row, that look like the last word
  Clock::time_point next_query_;
  Clock::time_point next_submission_;
  std::jthread server_;
};

}  // namespace rekernel
