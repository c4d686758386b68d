#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/jobs/job_folder.h"
#include "harness/jobs/slurm_client.h"
#include "harness/jobs/slurm_times.h"
#include "ops/result.h"

namespace rekernel {

/// Whether nodes see the folder and run the program, by a job of a minute that leaves word of it.
class NodeProbe {
 public:
  /// Waits so long; false: ended by somebody.
  using Wait = std::function<bool(std::chrono::milliseconds)>;

  /// All but `times` must outlive it.
  NodeProbe(const JobFolder& folder, const SlurmClient& slurm, const JobOptions& options,
            const SlurmTimes& times)
      : folder_(folder), slurm_(slurm), options_(options), times_(times) {}

  /// True where the word is there. An error says what is wrong with the nodes. False: the job has
  /// not run within `patience`, or left no word for a reason that tells nothing of the nodes.
  Result<bool> run(std::chrono::milliseconds patience, const Wait& wait);

  /// The job, while it is in the queue; else empty. May be called from any thread.
  std::string job() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// What is known of the job.
  struct Watch {
    Clock::time_point start;
    Clock::time_point next_query;
    std::optional<Clock::time_point> over_since;
    SlurmTask task;
  };

  std::string word() const;
  Result<std::optional<std::string>> watch(const std::string& name,
                                           std::chrono::milliseconds patience, const Wait& wait);
  void query(const std::string& name, Watch& watch) const;
  bool is_over_without_word(const Watch& watch) const;
  void set_job(const std::string& job);
  void say(const std::string& text) const;

  const JobFolder& folder_;
  const SlurmClient& slurm_;
  const JobOptions& options_;
  const SlurmTimes times_;
  mutable std::mutex mutex_;  ///< of what follows
  std::string job_;
};

}  // namespace rekernel
