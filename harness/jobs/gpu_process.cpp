#include "harness/jobs/gpu_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "harness/process/isolate.h"

namespace rekernel {
namespace {

/// The limits are those of the processes that the worker starts. It may wait for its GPU.
constexpr std::chrono::hours long_enough{24 * 30};

std::string how_it_ended(const ChildOutcome& outcome) {
  const std::string words = outcome.last_words.empty() ? "" : ": " + outcome.last_words;
  if (outcome.end == ChildOutcome::End::signalled) {
    return std::string("died of ") + ::strsignal(outcome.code) + words;
  }
  return "ended with status " + std::to_string(outcome.code) + words;
}

}  // namespace

std::string visible_alone(const char* visible, int device) {
  if (!visible) return std::to_string(device);
  std::string_view names = visible;
  for (int passed = 0; passed < device && !names.empty(); ++passed) {
    const std::size_t comma = names.find(',');
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return std::string(names.substr(0, names.find(',')));
}

void see_one_gpu_alone(int device) {
  constexpr const char* variable = "CUDA_VISIBLE_DEVICES";
  ::setenv(variable, visible_alone(std::getenv(variable), device).c_str(), 1);
}

Result<Ok> wait_for_gpu(const std::string& uuid, std::optional<GpuLock::Clock::time_point> deadline,
                        const GpuLock::OnWait& on_wait) {
  // Whoever evaluates takes it for itself; this one is free again at once.
  const Result<GpuLock> lock = GpuLock::acquire(uuid, deadline, on_wait);
  if (!lock) return lock.error();
  return Ok{};
}

EvaluationReport not_evaluated(const Candidate& candidate, const std::string& why) {
  EvaluationReport report = blank_report(candidate);
  report.failure = why;
  return report;
}

EvaluationReport evaluate_in_own_process(const Candidate& candidate,
                                         const EvaluateOptions& options) {
  EvaluateOptions alone = options;
  alone.device = 0;
  ChildCommand command;
  command.arguments = {own_executable(), "gpu-worker", std::to_string(options.device)};
  command.input = evaluation_request(candidate, alone);
  command.limits.processor_time = long_enough;
  command.limits.file_bytes = std::int64_t{1} << 40;
  command.limits.open_files = 4096;
  command.startup_deadline = long_enough;
  command.run_deadline = long_enough;
  const Result<ChildOutcome> outcome = run_child(command);
  if (!outcome) return not_evaluated(candidate, outcome.error().message);
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    return not_evaluated(candidate, "the process that evaluates on GPU " +
                                        std::to_string(options.device) + " " +
                                        how_it_ended(*outcome));
  }
  Result<EvaluationReport> report = report_from_json(outcome->result);
  return report ? std::move(*report) : not_evaluated(candidate, report.error().message);
}

int run_gpu_worker(
    const std::string& device,
    const std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)>& judge) {
  int number = 0;
  const auto [end, code] = std::from_chars(device.data(), device.data() + device.size(), number);
  const bool good = code == std::errc() && end == device.data() + device.size() && number >= 0;
  if (!good || ::fcntl(result_descriptor, F_SETFD, FD_CLOEXEC) != 0) return 2;  // started by hand
  see_one_gpu_alone(number);
  report_started(result_descriptor);
  const auto request = read_evaluation_request(read_all(STDIN_FILENO), "evaluation request");
  if (!request) return 2;
  EvaluationReport report = blank_report(request->candidate);
  try {
    report = judge(request->candidate, request->options);
  } catch (const std::exception& error) {
    report.failure = error.what();
  }
  write_all(result_descriptor, boost::json::serialize(to_json(report)));
  return 0;
}

}  // namespace rekernel
