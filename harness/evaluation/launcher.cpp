#include "harness/evaluation/launcher.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <future>

#include "harness/base/cache.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/any_size.h"
#include "harness/evaluation/judges.h"
#include "harness/evaluation/lookout.h"
#include "harness/evaluation/rig.h"
#include "harness/gpu/exclusive.h"
#include "harness/gpu/identity.h"
#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;
using Clock = std::chrono::steady_clock;

/// What stays on a GPU between evaluations goes after so long, or once somebody else wants the GPU.
constexpr std::chrono::seconds longest_idleness{10};
constexpr std::chrono::milliseconds pause_between_clearings{50};

/// The candidate's machine code for the device, from the cache or from a child.
Result<CompileOutcome> compile_for_device(const Candidate& candidate,
                                          const ComputeCapability& device) try {
  const auto [major, minor] = device;
  if (!runs_on(candidate.arch, major, minor)) {
    return Error{"not compiled: the device cannot run it"};  // the referee says so too
  }
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  const Result<std::shared_ptr<const Problem>> problem = problem_of(candidate);
  if (!problem) return problem.error();
  return compile_isolated(*compiler, candidate.program, problem_header(**problem),
                          Compiler::target_for_device(major, minor));
} catch (const std::exception& error) {
  return Error{error.what()};
}

std::string with_last_words(const std::string& text, const ChildOutcome& outcome) {
  return outcome.last_words.empty() ? text : text + ": " + outcome.last_words;
}

std::string story_of(const std::string& who, const ChildOutcome& outcome) {
  return with_last_words(who + " " + how_it_ended(outcome), outcome);
}

/// By somebody, or by a system that is short of memory: device code cannot bring that about.
bool was_killed(const ChildOutcome& outcome) {
  if (outcome.end != ChildOutcome::End::signalled) {
    return outcome.end != ChildOutcome::End::exited;
  }
  return outcome.code == SIGKILL || outcome.code == SIGTERM || outcome.code == SIGINT ||
         outcome.code == SIGHUP;
}

/// What the end of a candidate's process says of the candidate, or of this machine.
void note_dead_process(EvaluationReport& report, const ChildOutcome& outcome) {
  if (was_killed(outcome)) {
    report.failure = story_of("the candidate's process", outcome);
    return;
  }
  report.evaluation.status = Status::crashed;
  report.evaluation.message = story_of("the process", outcome);
}

/// What a referee that did not come to a report says. It waits no longer for a candidate than the
/// run deadline, and only in mode `once` does it run one itself.
void note_dead_referee(EvaluationReport& report, const Judges::Answer& answer,
                       const EvaluateOptions& options) {
  const auto timed_out = [&](const char* message) {
    report.evaluation.status = Status::timed_out;
    report.evaluation.message = message;
  };
  if (!answer.late) {
    report.failure = story_of("the judge", *answer.death);
  } else if (!answer.compiled) {
    timed_out("not compiled by the start-up deadline");
  } else if (answer.began && options.mode == EvaluateOptions::Mode::once) {
    timed_out("not done by the run deadline");
  } else {
    report.failure =
        with_last_words(answer.began ? "the judge's own work was not done by its deadline"
                                     : "the judge was not ready by the start-up deadline",
                        *answer.death);
  }
}

/// Copies of the session's descriptors, for the referee.
Result<std::vector<FileDescriptor>> descriptors_of(const EvaluateOptions& options,
                                                   ExternalSession* session) {
  std::vector<FileDescriptor> copies;
  for (std::size_t i = 0; i < options.external_references.size(); ++i) {
    const Result<std::array<int, 2>> descriptors = session->descriptors();
    if (!descriptors) return descriptors.error();
    for (const int descriptor : *descriptors) {
      copies.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    }
  }
  return copies;
}

}  // namespace

/// Processes for one candidate, which open the device or have opened it.
struct LocalLauncher::CandidateProcesses {
  static Result<CandidateProcesses> start(const GpuIdentity& gpu, const EvaluateOptions& options) {
    CandidateProcesses processes;
    processes.lifetime = lifetime_for(options);
    while (processes.runners.size() < candidate_processes(options)) {
      Result<RunnerProcess> runner = RunnerProcess::start_opening(gpu, processes.lifetime);
      if (!runner) return runner.error();
      processes.runners.push_back(std::move(*runner));
    }
    return processes;
  }

  /// The deadlines of referee and launcher end an evaluation; this is for a referee that is gone.
  static std::chrono::seconds lifetime_for(const EvaluateOptions& options) {
    const auto at_a_time = options.startup_deadline + options.whole_deadline();
    return longest_idleness + at_a_time * (1 + judged_sizes);
  }

  bool serve(const EvaluateOptions& options) const {
    return runners.size() == candidate_processes(options) && lifetime == lifetime_for(options);
  }

  std::vector<RunnerProcess> runners;
  std::chrono::seconds lifetime{0};
  bool stay = false;  ///< with the judges, for their candidate's next evaluation
};

/// A GPU with what of ours stays on it between evaluations.
struct LocalLauncher::Place {
  /// Those that were started ahead, or new ones.
  Result<CandidateProcesses> take_candidate_processes(const EvaluateOptions& options) {
    if (ahead.serve(options)) return std::exchange(ahead, {});
    return CandidateProcesses::start(gpu, options);
  }
  /// They open the device while those of the last candidate leave it.
  void start_ahead(const EvaluateOptions& options) {
    Result<CandidateProcesses> started = CandidateProcesses::start(gpu, options);
    // Why they cannot be started, the next evaluation will say.
    if (started) ahead = std::move(*started);
  }

  GpuIdentity gpu;
  std::optional<GpuLock> lock;
  std::unique_ptr<Lookout> lookout;
  std::unique_ptr<Judges> judges;      ///< off the GPU before the lock is released
  CandidateProcesses ahead;            ///< likewise; for the next candidate, none has met one yet
  std::vector<std::string> found_out;  ///< Judges::Answer::found_out of the last evaluation
  Clock::time_point idle_since;
};

LocalLauncher::LocalLauncher(ExternalSession* session,
                             std::function<void(const std::string&)> waiting,
                             std::optional<std::chrono::seconds> patience)
    : session_(session), waiting_(std::move(waiting)), patience_(patience) {}

LocalLauncher::~LocalLauncher() {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Place>& place : idle_) place->judges->stop();
}

/// As it was left by an evaluation, if one was made on that GPU a moment ago.
std::unique_ptr<LocalLauncher::Place> LocalLauncher::take_place(const GpuIdentity& gpu) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [&](const auto& place) { return place->gpu.uuid == gpu.uuid; });
  if (found == idle_.end()) {
    auto place = std::make_unique<Place>();
    place->gpu = gpu;
    return place;
  }
  std::unique_ptr<Place> place = std::move(*found);
  idle_.erase(found);
  return place;
}

void LocalLauncher::leave_place(std::unique_ptr<Place> place) {
  if (!place->judges || !place->judges->can_go_on()) return;
  if (place->lock && place->lock->is_wanted()) return;
  place->idle_since = Clock::now();
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(place));
  if (!caretaker_.joinable()) {
    caretaker_ = std::jthread([this](const std::stop_token& stop) { clear_idle_places(stop); });
  }
  change_.notify_all();
}

void LocalLauncher::clear_idle_places(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (idle_.empty()) {
      change_.wait(lock, stop, [&] { return !idle_.empty(); });
    } else {
      change_.wait_for(lock, stop, pause_between_clearings, [] { return false; });
    }
    std::vector<std::unique_ptr<Place>> leaving;
    std::erase_if(idle_, [&](std::unique_ptr<Place>& place) {
      const bool leaves = Clock::now() - place->idle_since > longest_idleness ||
                          (place->lock && place->lock->is_wanted());
      if (leaves) leaving.push_back(std::move(place));
      return leaves;
    });
    // Processes take a moment to leave a GPU.
    lock.unlock();
    leaving.clear();
    lock.lock();
  }
}

void LocalLauncher::prepare(int device) {
  const Result<GpuIdentity> gpu = identify_gpu(device);
  if (!gpu) return;  // the evaluation will say why
  std::unique_ptr<Place> place = take_place(*gpu);
  if (!place->lock) {
    Result<GpuLock> lock = GpuLock::acquire(gpu->uuid, Clock::now(), {});
    if (!lock) return;
    place->lock = std::move(*lock);
  }
  if (!place->judges) {
    auto started = Judges::start(*gpu);
    if (!started) return;
    place->judges = std::move(*started);
    place->judges->prepare();
  }
  leave_place(std::move(place));
}

EvaluationReport LocalLauncher::start_and_wait(const Candidate& candidate,
                                               const EvaluateOptions& options, Place& place,
                                               CandidateProcesses& processes) {
  const auto start = Clock::now();
  const std::shared_future<Result<CompileOutcome>> compiled =
      std::async(std::launch::async, compile_for_device, std::cref(candidate), place.gpu.capability)
          .share();
  const bool kept = place.judges != nullptr;
  std::optional<EvaluationReport> report =
      judged(candidate, options, compiled, place, kept, processes);
  // Judges that died while they had nothing to do say nothing about this candidate.
  if (!report) report = judged(candidate, options, compiled, place, false, processes);
  std::chrono::nanoseconds rest = Clock::now() - start;
  for (const auto& [phase, nanoseconds] : report->evaluation.split_ns) {
    rest -= std::chrono::nanoseconds(nanoseconds);
  }
  // What the referee does not see: processes beginning, and the candidate's ending.
  report->evaluation.split_ns.emplace_back("processes", rest.count());
  return std::move(*report);
}

/// Nothing if judges that were kept (`kept`) died before they began.
std::optional<EvaluationReport> LocalLauncher::judged(
    const Candidate& candidate, const EvaluateOptions& options,
    const std::shared_future<Result<CompileOutcome>>& compiled, Place& place, bool kept,
    CandidateProcesses& processes) {
  EvaluationReport report = blank_report(candidate);
  const auto failed = [&](const Error& error) {
    report.failure = error.message;
    return report;
  };
  if (!kept) {
    place.judges.reset();
    auto started = Judges::start(place.gpu);
    if (!started) return failed(started.error());
    place.judges = std::move(*started);
  }
  // With the judges, those that stayed are gone.
  const bool begins = !kept || processes.runners.empty();
  if (begins) {
    Result<CandidateProcesses> taken = place.take_candidate_processes(options);
    if (!taken) return failed(taken.error());
    processes.runners = std::move(taken->runners);
  }
  const Result<std::vector<FileDescriptor>> externals = descriptors_of(options, session_);
  if (!externals) return failed(externals.error());
  Judges::Case one{candidate, options, compiled, {}, {}, processes.stay};
  if (begins) {
    for (RunnerProcess& runner : processes.runners) one.runners.push_back(&runner);
  }
  for (const FileDescriptor& external : *externals) one.externals.push_back(external.get());
  Judges::Answer answer = place.judges->evaluate(one);
  place.found_out = std::move(answer.found_out);
  if (!place.judges->can_go_on()) place.judges.reset();

  if (answer.report) {
    if (!*answer.report) return failed(answer.report->error());
    report = std::move(**answer.report);
    if (report.gone_runner >= 0) {
      const auto gone = static_cast<std::size_t>(report.gone_runner);
      const Result<ChildOutcome>& end = processes.runners.at(gone).process->end();
      if (end) note_dead_process(report, *end);
    }
    // Judges that were kept are likely to serve again.
    const bool leave = !processes.stay || !report.passed();
    if (kept && leave && place.judges && options.has_the_gpu_alone()) place.start_ahead(options);
    return report;
  }
  if (!answer.death) return failed(answer.death.error());
  if (kept && !answer.began && !answer.late) return std::nullopt;
  if (compiled.get() && !compiled.get()->program) {
    // The compiler's verdict stands, whatever became of the referee that waited for it.
    report.evaluation.status = compiled.get()->status;
    report.evaluation.message = compiled.get()->message;
    return report;
  }
  note_dead_referee(report, answer, options);
  return report;
}

/// With the GPU for itself, and an eye on who else may use it.
EvaluationReport LocalLauncher::evaluate_alone(const Candidate& candidate,
                                               const EvaluateOptions& options, Place& place,
                                               CandidateProcesses& processes) {
  if (!place.lock) {
    std::optional<GpuLock::Clock::time_point> deadline;
    if (patience_) deadline = GpuLock::Clock::now() + *patience_;
    Result<GpuLock> lock =
        GpuLock::acquire(place.gpu.uuid, deadline, [&](const std::string& holder) {
          if (waiting_) {
            waiting_("GPU " + std::to_string(options.device) + " is taken by " + holder +
                     ": waiting for it …");
          }
        });
    if (!lock) return not_evaluated(candidate, lock.error().message);
    place.lock = std::move(*lock);
  }
  if (options.shared_gpu) return start_and_wait(candidate, options, place, processes);
  if (!place.lookout) place.lookout = std::make_unique<Lookout>(place.gpu.uuid);
  place.lookout->begin();
  if (auto others = place.lookout->other_processes()) return not_evaluated(candidate, *others);
  EvaluationReport report = start_and_wait(candidate, options, place, processes);
  if (auto others = place.lookout->other_processes()) return not_evaluated(candidate, *others);
  if (report.failure.empty()) {
    for (const std::string& entries : place.found_out) remember_all(entries, TimedChoices::kept);
  }
  report.evaluation.conditions.graphics = place.lookout->graphics();
  return report;
}

EvaluationReport LocalLauncher::evaluate(const Candidate& candidate,
                                         const EvaluateOptions& options) {
  // Before anybody waits for a GPU.
  if (!options.external_references.empty()) {
    if (!session_) return not_evaluated(candidate, "no external references here");
    if (const auto there = session_->descriptors(); !there) {
      return not_evaluated(candidate, there.error().message);
    }
  }
  const Result<GpuIdentity> gpu = identify_gpu(options.device);
  if (!gpu) return not_evaluated(candidate, gpu.error().message);
  std::unique_ptr<Place> place = take_place(*gpu);
  CandidateProcesses processes;
  processes.stay = may_ask_for_other_sizes(candidate, options);
  EvaluationReport report = options.takes_times()
                                ? evaluate_alone(candidate, options, *place, processes)
                                : start_and_wait(candidate, options, *place, processes);
  if (!processes.stay || !report.passed()) processes.runners.clear();
  if (report.faulted) tell_which_buffer(candidate, options, *place, report);
  if (processes.stay && report.passed()) {
    const auto evaluate = [&](const Candidate& sized, const EvaluateOptions& own) {
      if (!own.takes_times()) return start_and_wait(sized, own, *place, processes);
      // Nothing that its code ran in before is left.
      if (!processes.runners.empty()) place->start_ahead(own);
      processes.runners.clear();
      CandidateProcesses fresh;
      return evaluate_alone(sized, own, *place, fresh);
    };
    const auto compile = [&](const Candidate& sized) {
      // What it says, the evaluation finds out from the cache.
      (void)compile_for_device(sized, place->gpu.capability).ok();
    };
    judge_at_other_sizes(candidate, options, {evaluate, compile}, report.evaluation);
  }
  leave_place(std::move(place));
  return report;
}

/// After a fault: by a run in other surroundings, if that can tell.
void LocalLauncher::tell_which_buffer(const Candidate& candidate, const EvaluateOptions& options,
                                      Place& place, EvaluationReport& report) {
  EvaluateOptions diagnosis = options;
  diagnosis.mode = Mode::diagnosis;
  diagnosis.references.clear();
  diagnosis.external_references.clear();
  CandidateProcesses fresh;
  const EvaluationReport found = start_and_wait(candidate, diagnosis, place, fresh);
  const Status status = found.evaluation.status;
  if (!found.failure.empty()) {
    report.evaluation.message += "; what it wrote to could not be found out: " + found.failure;
  } else if (status == Status::out_of_bounds_write || status == Status::modified_input) {
    report.evaluation.status = status;
    report.evaluation.message = found.evaluation.message + " (" + report.evaluation.message + ")";
  }
}

}  // namespace rekernel
