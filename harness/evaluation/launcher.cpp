#include "harness/evaluation/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "harness/base/cache.h"
#include "harness/base/fields.h"
#include "harness/base/file_descriptor.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/referee.h"
#include "harness/evaluation/rig.h"
#include "harness/gpu/exclusive.h"
#include "harness/gpu/identity.h"
#include "harness/gpu/nvml.h"
#include "harness/process/channel.h"
#include "harness/process/sandbox.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

/// The largest file that the driver or a library may write: the driver keeps code that it compiles
/// itself, and shares memory through files.
constexpr std::int64_t largest_file = std::int64_t{1} << 30;
constexpr int most_open_files = 4096;  // CUDA opens dozens for each GPU of the machine
/// Threads that may be busy all the time: CUDA's waits spin, and our own programs compile.
constexpr int busy_threads = 16;
constexpr std::chrono::milliseconds pause_between_looks{200};
/// A runner whose referee has hung up has little left to do.
constexpr std::chrono::seconds farewell{2};

/// The limits of a child that uses CUDA. Its address space is not one of them: CUDA reserves
/// terabytes of addresses. Nor are its private pages (RLIMIT_DATA): nothing says how many the
/// driver may need.
ChildLimits device_limits(const EvaluateOptions& options) {
  ChildLimits limits;
  limits.processor_time = busy_threads * (options.startup_deadline + options.run_deadline);
  limits.file_bytes = largest_file;
  limits.open_files = most_open_files;
  return limits;
}

/// The candidate's machine code for the device, from the cache or from a child.
Result<CompileOutcome> compile_for_device(const Candidate& candidate,
                                          const ComputeCapability& device) try {
  const auto [major, minor] = device;
  if (!runs_on(candidate.arch, major, minor)) {
    return Error{"not compiled: the device cannot run it"};  // the referee says so too
  }
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  return compile_isolated(*compiler, candidate.program,
                          problem_header(*find_problem(candidate.problem)),
                          Compiler::target_for_device(major, minor));
} catch (const std::exception& error) {
  return Error{error.what()};
}

/// With what lets CUDA start and end fast. Each process spends time on every GPU that it sees, and
/// waits meanwhile for processes that begin on another. Each hardware queue takes time as well, and
/// ours issue to one stream: on an H200 three contexts at a time take 0.11 s with one queue, 0.29 s
/// with the usual eight, and end in half of the time.
Result<ChildOutcome> run_on_gpu(ChildCommand command, int device) {
  SandboxAdditions additions;
  additions.variables = {"CUDA_VISIBLE_DEVICES=" + visible_alone(device),
                         "CUDA_DEVICE_MAX_CONNECTIONS=1"};
  return run_sandboxed(std::move(command), SandboxDevices::gpu, additions);
}

/// A runner process and the thread that watches it, which it dies with. It is ended when this goes.
class RunnerChild {
 public:
  /// Gives the referee's ends of the conversation to `referee`.
  static Result<std::unique_ptr<RunnerChild>> start(const std::string& problem,
                                                    const EvaluateOptions& options,
                                                    std::vector<int>& referee) {
    auto sockets = Channel::sockets();
    if (!sockets) return sockets.error();
    Result<FileDescriptor> words = WordPage::create();
    if (!words) return words.error();
    int stop[2];
    if (::pipe2(stop, O_CLOEXEC) != 0) {
      return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
    }
    ChildCommand command;
    command.arguments = {own_executable(), "runner-worker", problem};
    command.limits = device_limits(options);
    // The referee's deadlines end an evaluation; these are for a referee that is gone.
    command.startup_deadline = options.startup_deadline + options.run_deadline;
    command.run_deadline = command.startup_deadline;
    command.stop = stop[0];
    const int copy = ::fcntl(words->get(), F_DUPFD_CLOEXEC, 0);
    command.inherited = {sockets->second.release(), copy};
    referee.push_back(sockets->first.release());
    referee.push_back(words->release());
    return std::unique_ptr<RunnerChild>(new RunnerChild(
        std::move(command), options.device, FileDescriptor(stop[0]), FileDescriptor(stop[1])));
  }

  /// How it ended: by itself, now that its referee is gone, or stopped.
  const Result<ChildOutcome>& end() {
    if (outcome_.wait_for(farewell) != std::future_status::ready) stop_.close();
    return outcome_.get();
  }

  ~RunnerChild() { stop_.close(); }

 private:
  RunnerChild(ChildCommand command, int device, FileDescriptor watched, FileDescriptor stop)
      : watched_(std::move(watched)),
        stop_(std::move(stop)),
        outcome_(std::async(std::launch::async, [command = std::move(command), device]() mutable {
                   return run_on_gpu(std::move(command), device);
                 }).share()) {}

  FileDescriptor watched_;
  FileDescriptor stop_;
  std::shared_future<Result<ChildOutcome>> outcome_;
};

/// What a process that gave no report says of the candidate, or of the harness.
void note_dead_process(Evaluation& evaluation, const ChildOutcome& outcome) {
  const std::string words = outcome.last_words.empty() ? "" : ": " + outcome.last_words;
  evaluation.status = Status::crashed;
  switch (outcome.end) {
    case ChildOutcome::End::startup_deadline:
      evaluation.status = Status::timed_out;
      evaluation.message = "not ready to run by the start-up deadline" + words;
      break;
    case ChildOutcome::End::run_deadline:
      evaluation.status = Status::timed_out;
      evaluation.message = "not done by the run deadline" + words;
      break;
    case ChildOutcome::End::signalled:
      evaluation.message = std::string("the process died of ") + strsignal(outcome.code) + words;
      break;
    case ChildOutcome::End::result_too_long:
      evaluation.message = "the process wrote a report without end" + words;
      break;
    case ChildOutcome::End::exited:
      evaluation.message = "the process ended with status " + std::to_string(outcome.code) + words;
      break;
    case ChildOutcome::End::stopped:
      evaluation.message = "the process was stopped" + words;
      break;
  }
}

/// Everything that one evaluation starts.
struct Processes {
  ChildCommand referee;
  std::unique_ptr<RunnerChild> candidate;
  std::unique_ptr<RunnerChild> repetition;
  std::unique_ptr<RunnerChild> libraries;
};

Result<Ok> start_runners(Processes& processes, const Problem& problem,
                         const EvaluateOptions& options) {
  const auto start = [&](std::unique_ptr<RunnerChild>& into, bool needed) -> Result<Ok> {
    if (!needed) return Ok{};
    auto child = RunnerChild::start(problem.id, options, processes.referee.inherited);
    if (!child) return child.error();
    into = std::move(*child);
    return Ok{};
  };
  Result<Ok> started = start(processes.candidate, true);
  if (started) started = start(processes.repetition, needs_repetition(options));
  if (started) started = start(processes.libraries, needs_libraries(options, problem));
  return started;
}

Result<Ok> check_session(const EvaluateOptions& options, ExternalSession* session) {
  if (options.external_references.empty()) return Ok{};
  if (!session) return Error{"no external references here"};
  const Result<std::array<int, 2>> descriptors = session->descriptors();
  if (!descriptors) return descriptors.error();
  return Ok{};
}

Result<Ok> add_externals(ChildCommand& referee, const EvaluateOptions& options,
                         ExternalSession* session) {
  for (std::size_t i = 0; i < options.external_references.size(); ++i) {
    const Result<std::array<int, 2>> descriptors = session->descriptors();
    if (!descriptors) return descriptors.error();
    for (const int descriptor : *descriptors) {
      referee.inherited.push_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    }
  }
  return Ok{};
}

/// Looks again and again who else computes on a GPU, as far as that can be listed. For what cannot,
/// the referee measures.
class Lookout {
 public:
  explicit Lookout(const std::string& uuid) {
    Result<GpuMonitor> monitor = GpuMonitor::open(uuid);
    if (!monitor) return;
    monitor_ = std::move(*monitor);
    look();
    watcher_ = std::jthread([this](const std::stop_token& stop) {
      std::mutex unused;
      std::unique_lock lock(unused);
      std::condition_variable_any never;
      while (!stop.stop_requested()) {
        never.wait_for(lock, stop, pause_between_looks, [] { return false; });
        if (!stop.stop_requested()) look();
      }
    });
  }

  /// Why no time counts: who computed there at some moment until now.
  std::optional<std::string> company() {
    if (monitor_) look();
    const std::lock_guard lock(mutex_);
    if (company_.empty()) return std::nullopt;
    return company_ +
           " computes on the GPU: end it, or give --shared-gpu, whose times are not recorded";
  }

  std::vector<std::string> graphics() {
    const std::lock_guard lock(mutex_);
    return {graphics_.begin(), graphics_.end()};
  }

 private:
  void look() {
    const GpuOccupants present = occupants(*monitor_);
    const pid_t own = ::getpid();
    const std::vector<GpuProcess> foreign = foreign_compute(present, {&own, 1});
    const std::lock_guard lock(mutex_);
    if (company_.empty() && !foreign.empty()) company_ = to_text(foreign.front());
    for (const GpuProcess& process : graphics_only(present)) graphics_.insert(to_text(process));
  }

  std::optional<GpuMonitor> monitor_;
  std::mutex mutex_;  ///< of what follows
  std::string company_;
  std::set<std::string> graphics_;
  std::jthread watcher_;  ///< ends before the rest goes
};

void close_all(const std::vector<int>& descriptors) {
  for (const int descriptor : descriptors) ::close(descriptor);
}

}  // namespace

EvaluationReport LocalLauncher::start_and_wait(const Candidate& candidate,
                                               const EvaluateOptions& options,
                                               const GpuIdentity& gpu) {
  const auto start = std::chrono::steady_clock::now();
  EvaluationReport report = start_processes(candidate, options, gpu);
  std::chrono::nanoseconds rest = std::chrono::steady_clock::now() - start;
  for (const auto& [phase, nanoseconds] : report.evaluation.split_ns) {
    rest -= std::chrono::nanoseconds(nanoseconds);
  }
  // What the referee does not see: its own process beginning and all of them ending.
  report.evaluation.split_ns.emplace_back("processes", rest.count());
  return report;
}

EvaluationReport LocalLauncher::start_processes(const Candidate& candidate,
                                                const EvaluateOptions& options,
                                                const GpuIdentity& gpu) {
  EvaluationReport report = blank_report(candidate);
  const std::shared_future<Result<CompileOutcome>> compiled =
      std::async(std::launch::async, compile_for_device, std::cref(candidate), gpu.capability)
          .share();
  Processes processes;
  ChildCommand& command = processes.referee;
  Result<Ok> ready = Ok{};
  if (options.mode != Mode::once) {
    ready = start_runners(processes, *find_problem(candidate.problem), options);
  }
  if (ready) ready = add_externals(command, options, session_);
  if (!ready) {
    close_all(command.inherited);
    report.failure = ready.error().message;
    return report;
  }
  command.arguments = {own_executable(), "referee-worker"};
  command.input = referee_request(candidate, options);
  command.more_input = [compiled] {
    std::string bytes;
    append_field(bytes, to_fields(compiled.get()));
    return bytes;
  };
  command.limits = device_limits(options);
  command.startup_deadline = options.startup_deadline;
  command.run_deadline = options.run_deadline;
  const Result<ChildOutcome> outcome = run_on_gpu(std::move(command), options.device);
  if (!outcome) {
    report.failure = outcome.error().message;
    return report;
  }
  remember_all(outcome->startup);
  if (processes.libraries) {
    // No code of a candidate ever ran there.
    if (const Result<ChildOutcome>& end = processes.libraries->end()) remember_all(end->startup);
  }
  // A report counts only from a referee that ended well: one that dies while writing wrote no
  // verdict.
  if (outcome->end == ChildOutcome::End::exited && outcome->code == 0) {
    Result<EvaluationReport> received = report_from_json(outcome->result);
    if (!received) {
      report.failure = received.error().message;
      return report;
    }
    report = std::move(*received);
    if (report.runner_is_gone) {
      const Result<ChildOutcome>& end = processes.candidate->end();
      if (end) note_dead_process(report.evaluation, *end);
    }
    return report;
  }
  if (compiled.get() && !compiled.get()->program) {
    // The compiler's verdict stands, whatever became of the referee that waited for it.
    report.evaluation.status = compiled.get()->status;
    report.evaluation.message = compiled.get()->message;
    return report;
  }
  note_dead_process(report.evaluation, *outcome);
  return report;
}

/// With the GPU for itself, and an eye on who else may use it.
EvaluationReport LocalLauncher::evaluate_alone(const Candidate& candidate,
                                               const EvaluateOptions& options,
                                               const GpuIdentity& gpu) {
  std::optional<GpuLock::Clock::time_point> deadline;
  if (patience_) deadline = GpuLock::Clock::now() + *patience_;
  const Result<GpuLock> lock = GpuLock::acquire(gpu.uuid, deadline, [&](const std::string& holder) {
    if (waiting_) {
      waiting_("GPU " + std::to_string(options.device) + " is taken by " + holder +
               ": waiting for it …");
    }
  });
  if (!lock) return not_evaluated(candidate, lock.error().message);
  if (options.shared_gpu) return start_and_wait(candidate, options, gpu);
  Lookout lookout(gpu.uuid);
  if (auto company = lookout.company()) return not_evaluated(candidate, *company);
  EvaluationReport report = start_and_wait(candidate, options, gpu);
  if (auto company = lookout.company()) return not_evaluated(candidate, *company);
  report.evaluation.conditions.graphics = lookout.graphics();
  return report;
}

EvaluationReport LocalLauncher::evaluate(const Candidate& candidate,
                                         const EvaluateOptions& options) {
  // Before anybody waits for a GPU.
  if (Result<Ok> there = check_session(options, session_); !there) {
    return not_evaluated(candidate, there.error().message);
  }
  const Result<GpuIdentity> gpu = identify_gpu(options.device);
  if (!gpu) return not_evaluated(candidate, gpu.error().message);
  EvaluationReport report = options.takes_times() ? evaluate_alone(candidate, options, *gpu)
                                                  : start_and_wait(candidate, options, *gpu);
  if (!report.faulted) return report;
  EvaluateOptions diagnosis = options;
  diagnosis.mode = Mode::diagnosis;
  diagnosis.references.clear();
  diagnosis.external_references.clear();
  const EvaluationReport found = start_and_wait(candidate, diagnosis, *gpu);
  const Status status = found.evaluation.status;
  if (found.failure.empty() &&
      (status == Status::out_of_bounds_write || status == Status::modified_input)) {
    report.evaluation.status = status;
    report.evaluation.message = found.evaluation.message + " (" + report.evaluation.message + ")";
  }
  return report;
}

}  // namespace rekernel
