#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/evaluation/launcher.h"
#include "harness/jobs/job_folder.h"
#include "harness/jobs/node_probe.h"
#include "harness/jobs/slurm_client.h"
#include "harness/jobs/slurm_tasks.h"
#include "harness/jobs/slurm_times.h"
#include "ops/result.h"

namespace rekernel {

/// Evaluates candidates as tasks of Slurm's job arrays, one GPU each. Any number of threads may
/// wait in evaluate(); one thread of ours submits for all of them and looks for results.
///
/// A job that ends without a result is submitted again, so many times; a pre-empted one as often as
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

  /// Whether nodes see the folder and run the program, by a one-minute job that leaves a note;
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
  struct Asked {
    std::string key;
    std::string candidate;  ///< its name
    SlurmTasks::Promise promise;
  };

  SlurmLauncher(JobFolder folder, SlurmJobOptions slurm, JobOptions options, SlurmTimes times);

  void serve(const std::stop_token& stop);
  void take_asked();
  void close();

  const JobFolder folder_;
  const JobOptions options_;
  const SlurmTimes times_;
  const SlurmClient slurm_;
  NodeProbe probe_;

  mutable std::mutex mutex_;  ///< of what follows, up to the thread's own
  std::condition_variable_any changed_;
  std::vector<Asked> asked_;
  bool cancelling_ = false;
  bool closed_ = false;
  bool left_ = false;
  std::string trouble_;

  SlurmTasks tasks_;  ///< the thread's own
  std::jthread server_;
};

}  // namespace rekernel
