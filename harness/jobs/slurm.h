#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// What a job asks of Slurm, as its owner says. What is empty is not asked.
struct SlurmJobOptions {
  std::string partition;
  std::string account;
  std::string constraint;
  std::string time = "15";         ///< as sbatch reads it: minutes, or hours:minutes:seconds
  std::vector<std::string> flags;  ///< more of sbatch's options, as they are
};

/// The arguments of sbatch for `tasks` tasks under one name, a GPU each.
std::vector<std::string> sbatch_arguments(const SlurmJobOptions& options, const std::string& name,
                                          std::size_t tasks,
                                          const std::vector<std::string>& excluded_nodes);

/// Why sbatch did not take a job.
enum class SlurmRefusal {
  full,         ///< a limit of the queue: later, or fewer at a time
  array,        ///< fewer at a time
  unreachable,  ///< nobody knows whether the job is there
  permanent,    ///< it would never run
};
SlurmRefusal refusal_of(const std::string& message);

/// A job, or a task of an array, as squeue lists it.
struct SlurmTask {
  std::string job;  ///< of an array: its first job's
  std::size_t index = 0;
  std::string state;
  int wait_status = 0;
  std::string node;
  std::string name;
  std::string reason;
  std::int64_t restarts = 0;  ///< how often Slurm put it back into its queue
};

/// The arguments of squeue for the jobs of these names, also those that ended lately.
std::vector<std::string> squeue_arguments(const std::vector<std::string>& names);
Result<std::vector<SlurmTask>> parse_squeue(const std::string& output);

/// Whether the task will do nothing more.
bool is_over(const SlurmTask& task);

/// The exit statuses of a job that is not begun: this folder is not there, this program does not
/// run there, nothing can be written into the folder.
inline constexpr int no_shared_folder = 75;
inline constexpr int no_program = 76;
inline constexpr int no_writing = 77;
/// Whether one of them is the task's: what hinders it hinders every job on its node.
bool is_no_place_for_jobs(const SlurmTask& task);

/// What ended a task that left no result, and what its owner can do.
std::string what_ended(const SlurmTask& task, const SlurmJobOptions& options,
                       const std::string& folder, const std::string& program);

}  // namespace rekernel
