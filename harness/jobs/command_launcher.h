#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "harness/base/file_descriptor.h"
#include "harness/evaluation/launcher.h"
#include "harness/jobs/job_folder.h"

namespace rekernel {

struct CommandTimes {
  std::chrono::milliseconds deadline{std::chrono::minutes(60)};  ///< of one job, with its queue
  std::chrono::milliseconds arrival{30'000};  ///< that a result may need after its job's end
  std::chrono::milliseconds look{200};        ///< between two looks for it
};

/// Evaluates candidates by a command that starts a program elsewhere and waits for its end (a
/// remote shell, another engine's submission): the prefix, as a shell reads it, goes before the
/// program and its arguments. Any number of threads may wait in evaluate(), with a command each.
class CommandLauncher : public EvaluationLauncher {
 public:
  /// Fails where the prefix cannot be read or its program is not here.
  static Result<std::unique_ptr<CommandLauncher>> open(JobFolder folder, std::string prefix,
                                                       JobOptions options, CommandTimes times);

  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override;
  /// Ends all commands, and all evaluations with a failure.
  void cancel();
  bool is_cancelled() const;
  bool is_over() const { return options_.is_over(); }

 private:
  CommandLauncher(JobFolder folder, std::string prefix, JobOptions options, CommandTimes times,
                  FileDescriptor watched, FileDescriptor stop)
      : folder_(std::move(folder)),
        prefix_(std::move(prefix)),
        options_(std::move(options)),
        times_(times),
        watched_(std::move(watched)),
        stop_(std::move(stop)) {}

  Result<EvaluationReport> try_once(const std::string& key);

  const JobFolder folder_;
  const std::string prefix_;
  const JobOptions options_;
  const CommandTimes times_;
  FileDescriptor watched_;
  mutable std::mutex mutex_;  ///< of what follows
  FileDescriptor stop_;
  std::mutex refusal_mutex_;  ///< results are compared one by one
};

}  // namespace rekernel
