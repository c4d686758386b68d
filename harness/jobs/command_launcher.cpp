#include "harness/jobs/command_launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "harness/base/text.h"
#include "harness/jobs/command_prefix.h"
#include "harness/process/tool.h"

namespace rekernel {

Result<std::unique_ptr<CommandLauncher>> CommandLauncher::open(JobFolder folder, std::string prefix,
                                                               JobOptions options,
                                                               CommandTimes times) {
  if (Result<Ok> checked = check_prefix(prefix, options.environment); !checked) {
    return checked.error();
  }
  int stop[2];
  if (::pipe2(stop, O_CLOEXEC) != 0) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  return std::unique_ptr<CommandLauncher>(
      new CommandLauncher(std::move(folder), std::move(prefix), std::move(options), times,
                          FileDescriptor(stop[0]), FileDescriptor(stop[1])));
}

EvaluationReport CommandLauncher::evaluate(const Candidate& candidate,
                                           const EvaluateOptions& options) {
  EvaluateOptions own = options;
  own.device = 0;
  const Result<std::string> key = folder_.put_request(candidate, own);
  if (!key) return not_evaluated(candidate, key.error().message);
  for (int tries = 1;; ++tries) {
    Result<EvaluationReport> report = try_once(*key);
    if (report) {
      folder_.remove_request(*key);
      return std::move(*report);
    }
    const std::string& why = report.error().message;
    if (is_cancelled()) return not_evaluated(candidate, "cancelled");
    if (options_.is_over()) return not_evaluated(candidate, left_at_deadline);
    if (tries >= options_.tries) {
      return not_evaluated(candidate, "no result of " +
                                          counted(static_cast<std::size_t>(tries), "job") +
                                          ", of the last since: " + why);
    }
    if (options_.say) {
      options_.say(candidate.name + ": " + why + "; started again (" + std::to_string(tries + 1) +
                   " of " + std::to_string(options_.tries) + ")");
    }
  }
}

/// One command, unless the result is there already. An error says why there is none after it.
Result<EvaluationReport> CommandLauncher::try_once(const std::string& key) {
  std::string end = "an earlier job";
  bool good = true;
  if (!folder_.results().contains(key)) {
    ToolCommand command;
    command.arguments = {"/bin/sh",        "-c",           prefix_ + " \"$@\"",     "sh",
                         options_.program, "evaluate-job", folder_.path().string(), key};
    command.environment = options_.environment;
    command.deadline = times_.deadline;
    if (options_.deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          *options_.deadline - std::chrono::steady_clock::now());
      command.deadline = std::clamp(left, std::chrono::milliseconds(0), times_.deadline);
    }
    command.stop = watched_.get();
    const Result<ToolOutcome> outcome = run_tool(command);
    if (!outcome) return outcome.error();
    good = outcome->good();
    end = outcome->last_words;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto patience = good ? times_.arrival : times_.look;
  while (!folder_.results().contains(key)) {
    if (is_cancelled()) return Error{"cancelled"};
    if (std::chrono::steady_clock::now() - start >= patience) {
      return Error{good ? "the command ended well, but its result never came: is " +
                              folder_.path().string() +
                              " on a file system that both machines share (--jobs-folder)?"
                        : "the command failed: " + end};
    }
    std::this_thread::sleep_for(times_.look);
    folder_.renew_results();
  }
  Result<JobResult> result = folder_.read_result(key);
  if (!result) {
    folder_.remove_result(key);
    return result.error();
  }
  const std::lock_guard lock(refusal_mutex_);
  auto refusal = folder_.refusal(*result, options_.target, options_.mixed_gpus);
  if (!refusal && !result->report.failure.empty()) {
    refusal = "node " + result->node + ": " + result->report.failure;
  }
  if (!refusal) return std::move(result->report);
  folder_.remove_result(key);
  return Error{*refusal};
}

void CommandLauncher::cancel() {
  const std::lock_guard lock(mutex_);
  stop_.close();
}

bool CommandLauncher::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return !stop_.is_open();
}

}  // namespace rekernel
