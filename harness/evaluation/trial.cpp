#include "harness/evaluation/trial.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "harness/evaluation/check.h"
#include "harness/evaluation/setup_failure.h"
#include "harness/evaluation/statistics.h"
#include "harness/evaluation/time.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;
using Mode = EvaluateOptions::Mode;

/// Timed runs are judged: all of them where that takes no longer than the first, else a random
/// part, and never fewer than the second. A kernel that is wrong in every second run, as many as it
/// takes to move a median, passes 12 judged ones once in 4096 times.
constexpr std::chrono::milliseconds timed_checks_budget{100};
constexpr int fewest_timed_checks = 12;
/// As many different stress inputs as this allows are run, each several times: outputs that
/// are equal bit for bit are judged once. A kernel that is careful in a share c of its runs, less
/// than half where it gains by the others, escapes a stress case with a chance of c to the power of
/// the case's runs: six of them, and four of large tensors, which take long to make and to judge.
constexpr std::chrono::milliseconds stress_checks_budget{50};
constexpr int most_inputs_per_case = 3;
constexpr int stress_runs = 3;
constexpr int stress_runs_on_large_tensors = 2;
constexpr std::chrono::milliseconds judgement_of_large_tensors{3};
constexpr int repeats = 2;
/// When a candidate's runs have taken so long together, spare ones are left out: some 4 ms a run.
/// Those that are left are all judged, so that nobody gains by being slow.
constexpr std::chrono::nanoseconds time_of_all_runs = std::chrono::milliseconds(500);
/// Runs after which somebody looks whether the GPU is idle.
constexpr int watched_runs = 4;
/// How long a process that was hung up on may take to leave the GPU.
constexpr std::chrono::seconds farewell{3};
constexpr int external_blocks = 5;
/// The headline's second name, which shows the noise, has a sample for so many of the first.
constexpr int samples_a_repeated_one = 3;

int affordable(std::chrono::nanoseconds budget, std::chrono::nanoseconds each) {
  return static_cast<int>(
      std::min<std::int64_t>(budget / std::max(each, std::chrono::nanoseconds(1)), 1 << 20));
}

int stress_cases(const Problem& problem, const EvaluateOptions& options) {
  return options.stress ? static_cast<int>(problem.stress_cases.size()) : 0;
}

}  // namespace

ScheduleRequest verdict_schedule(const Problem& problem, const EvaluateOptions& options,
                                 std::chrono::nanoseconds judgement) {
  ScheduleRequest request;
  request.timed = options.samples;
  request.judged = std::max(fewest_timed_checks, affordable(timed_checks_budget, judgement));
  request.needed = fewest_timed_checks;
  request.watched = watched_runs;
  request.repeats = repeats;
  request.stress_cases = stress_cases(problem, options);
  request.inputs_per_case =
      std::clamp(affordable(stress_checks_budget, std::max(request.stress_cases, 1) * judgement), 1,
                 most_inputs_per_case);
  request.runs_per_case =
      judgement > judgement_of_large_tensors ? stress_runs_on_large_tensors : stress_runs;
  return request;
}

ScheduleRequest external_schedule(const Problem& problem, const EvaluateOptions& options,
                                  std::chrono::nanoseconds judgement) {
  ScheduleRequest request = verdict_schedule(problem, options, judgement);
  request.watched = 0;
  request.repeats = 1;
  request.inputs_per_case = 1;
  request.runs_per_case = 1;
  return request;
}

ScheduleRequest blinding_schedule(const Problem& problem, const EvaluateOptions& options) {
  ScheduleRequest request;
  request.timed = 2 * options.samples;
  request.judged = options.samples;
  request.repeats = options.samples / 2;
  request.stress_cases = stress_cases(problem, options);
  const int cases = 2 * std::max(request.stress_cases, 1);
  request.runs_per_case = (options.samples + cases - 1) / cases;
  return request;
}

ScheduleRequest errors_schedule(const Problem& problem, const EvaluateOptions& options) {
  ScheduleRequest request;
  request.timed = request.judged = options.samples;
  request.repeats = 1;
  request.stress_cases = stress_cases(problem, options);
  request.runs_per_case = 1;
  return request;
}

/// The runs of one schedule, as far as they are made.
class Trial::Runs {
 public:
  Runs(Schedule schedule, int processes) : schedule_(std::move(schedule)), times_(processes) {
    for (std::size_t i = 0; i < schedule_.inputs.size(); ++i) {
      inputs_.push_back({schedule_.inputs[i], schedule_.is_shared(i), {}, {}});
    }
  }

  std::size_t left() const { return schedule_.runs.size() - next_; }
  std::size_t size() const { return schedule_.runs.size(); }
  const PlannedRun& take() { return schedule_.runs.at(next_++); }
  InputState& state_of(const PlannedRun& run) { return inputs_[run.input]; }

  void note_time(const PlannedRun& run, const RunTimes& times) {
    taken_ += std::chrono::nanoseconds(times.stamps_ns);
    if (run.purpose != Purpose::timed) return;
    times_[static_cast<std::size_t>(run.process)].push_back(times);
    events_ns_.push_back(times.events_ns);
  }

  bool leaves_out(const PlannedRun& run) const { return run.spare && taken_ > time_of_all_runs; }

  /// Times of the timed runs, by process.
  const std::vector<std::vector<RunTimes>>& times() const { return times_; }
  const std::vector<std::int64_t>& events_ns() const { return events_ns_; }

  /// A group for each input that several runs had.
  void add_digests(BadgeEvidence& evidence) const {
    for (const InputState& state : inputs_) {
      if (state.digests.size() > 1) evidence.digests.push_back(state.digests);
    }
  }

 private:
  Schedule schedule_;
  std::vector<InputState> inputs_;
  std::vector<std::vector<RunTimes>> times_;
  std::vector<std::int64_t> events_ns_;
  std::chrono::nanoseconds taken_{0};
  std::size_t next_ = 0;
};

Trial::Runs Trial::begin(const ScheduleRequest& request) {
  if (!result_.evidence) {
    result_.evidence.emplace();
    result_.badges.set(Badge::strict, has_fp32_outputs(problem_));
    if (!result_.badges.has(Badge::strict)) note_badge("strict asks for an FP32 output");
  }
  Schedule schedule = draw_schedule(request, [this] { return instruments_.fresh_seed(); });
  if (options_.seed) {
    std::uint64_t seed = *options_.seed;
    for (PlannedInput& input : schedule.inputs) input.seed = seed++;
  }
  return {std::move(schedule), request.processes};
}

/// One run of the candidate, whatever it is for.
std::optional<Rejection> Trial::step(Runs& runs) {
  const PlannedRun& run = runs.take();
  if (runs.leaves_out(run)) return std::nullopt;
  InputState& state = runs.state_of(run);
  // There is nothing left to lose.
  if (run.purpose == Purpose::stress && !stress_failure_.empty()) return std::nullopt;
  const bool takes_time = run.purpose == Purpose::timed && options_.takes_times();
  const std::uint64_t seed = state.input.seed;
  if (!takes_time) std::this_thread::sleep_for(options_.planted_gap);
  runs.note_time(run, instruments_.run_candidate(run.process, state.input, takes_time));
  if (state.input.seed != seed) state = {state.input, false, {}, {}};  // it repeats nothing now
  std::optional<Rejection> rejection = examine(run, state);
  if (observer_) {
    observer_(run);
    rejection.reset();
    stress_failure_.clear();
  }
  if (!rejection && run.watched) rejection = look_for_interruptions();
  return rejection;
}

/// Equal outputs for equal inputs are judged once.
std::optional<Rejection> Trial::examine(const PlannedRun& run, InputState& state) {
  std::string digest;
  if (state.shared) {
    digest = instruments_.digest();
    state.digests.push_back(digest);
  }
  if (!run.judged || (state.shared && digest == state.judged_digest)) return std::nullopt;
  state.judged_digest = digest;
  return judge_output(state.input);
}

std::optional<Rejection> Trial::judge_output(const PlannedInput& input) {
  Judgement judgement = instruments_.judge(input);
  std::optional<ErrorStats>& stats = judgement.stats;
  std::optional<Rejection>& rejection = judgement.rejection;
  if (input.stress_case >= 0) {
    if (!judgement.has_finite_truth) stress_left_out_.insert(input.stress_case);
    const std::string& name =
        problem_.stress_cases[static_cast<std::size_t>(input.stress_case)].name;
    if (stats) {
      double& largest = stress_[input.stress_case];
      if (!(stats->worst_tolerance_ratio <= largest)) largest = stats->worst_tolerance_ratio;
    }
    if (!rejection) return std::nullopt;
    if (rejection->status == Status::wrong_result) {
      stress_failure_ = name + ": " + rejection->message;
      return std::nullopt;
    }
    rejection->message += " (on the stress inputs " + name + ")";
    return rejection;
  }
  if (rejection && !stats && options_.mode == Mode::errors) {
    stats = instruments_.measure_errors();  // of interest whatever else is wrong
  }
  if (stats) note_errors(*stats);
  result_.seeds.push_back(input.seed);
  if (!rejection) compare_with_references(input, *stats);
  return rejection;
}

void Trial::note_errors(const ErrorStats& stats) {
  if (!result_.errors || !(stats.worst_tolerance_ratio <= result_.errors->worst_tolerance_ratio)) {
    result_.errors = stats;
  }
}

/// The references' own errors on the same inputs: all of them for the first that are judged, the
/// headline's wherever `strict` depends on it.
void Trial::compare_with_references(const PlannedInput& input, const ErrorStats& candidate) {
  const bool first = result_.seeds.size() == 1;
  const std::optional<std::size_t> headline_index = headline();
  double share = candidate.worst_strict_ratio;
  for (std::size_t i = 0; i < references_.size(); ++i) {
    const bool is_headline = i == headline_index;
    const bool needed =
        is_headline && result_.badges.has(Badge::strict) && candidate.worst_strict_ratio > 1.0;
    if (!references_[i].unavailable.empty() || !(first || needed)) continue;
    const ErrorStats library = instruments_.reference_errors(i, input);
    if (first) reference_errors_[references_[i].id] = library;
    if (is_headline) share = strict_share(candidate, &library);
  }
  if (!result_.badges.has(Badge::strict)) return;
  std::optional<double>& largest = result_.evidence->strict_share;
  if (!largest || !(share <= *largest)) largest = share;
  if (!(share <= 1.0)) {
    result_.badges.set(Badge::strict, false);
    note_badge(std::string("strict: an element misses 1e-4 + 1e-4·|truth|, and ") +
               (headline_index ? "the error is more than twice the FP32 library's"
                               : "no FP32 library's error was measured beside it"));
  }
}

std::optional<std::size_t> Trial::headline() const {
  for (std::size_t i = 0; i < references_.size(); ++i) {
    if (references_[i].unavailable.empty()) return i;
  }
  return std::nullopt;
}

std::optional<Rejection> Trial::time(const ScheduleRequest& request,
                                     const std::vector<ClockCalibration>& calibrations) {
  const std::string candidate_name = "candidate";
  const std::string repeated_headline = "headline again";
  Runs runs = begin(request);
  std::optional<Rejection> rejection;
  std::map<std::string, std::vector<RunTimes>> reference_runs;

  std::vector<TimedSubject> subjects;
  subjects.push_back({candidate_name,
                      [&] {
                        if (!rejection) rejection = step(runs);
                        return std::int64_t{0};  // kept with the runs
                      },
                      static_cast<int>(runs.size())});
  const auto reference_subject = [&](const std::string& name, std::size_t reference, int count) {
    return TimedSubject{name,
                        [&, reference] {
                          if (rejection) return std::int64_t{0};
                          std::vector<RunTimes>& all = reference_runs[references_[reference].id];
                          all.push_back(instruments_.run_reference(reference));
                          return all.back().events_ns;
                        },
                        count};
  };
  for (std::size_t i = 0; i < references_.size(); ++i) {
    if (!references_[i].unavailable.empty()) continue;
    subjects.push_back(reference_subject(references_[i].id, i, options_.samples));
  }
  const std::optional<std::size_t> headline_index = headline();
  if (headline_index) {
    const int count = std::max(1, options_.samples / samples_a_repeated_one);
    subjects.push_back(reference_subject(repeated_headline, *headline_index, count));
  }

  auto samples = measure_interleaved(subjects);
  runs.add_digests(*result_.evidence);
  if (rejection) return rejection;
  result_.timing = summarise(runs.events_ns());
  for (const ReferenceState& reference : references_) {
    ReferenceResult found = describe(reference);
    if (reference.unavailable.empty()) {
      found.timing = summarise(samples.at(reference.id));
      found.percent_of_reference =
          percent_of_reference(found.timing.samples_ns, result_.timing->samples_ns);
    }
    result_.references.push_back(std::move(found));
  }
  if (headline_index) note_noise(samples[repeated_headline]);
  laps_.lap("timing");
  rejection = check_clocks(calibrations, runs, &result_.witnesses);
  if (options_.shared_gpu) return rejection;
  for (const ReferenceState& reference : references_) {
    const auto found = reference_runs.find(reference.id);
    if (rejection || found == reference_runs.end()) continue;
    rejection = check_flush_beside(calibrations.front(), found->second);
    if (!rejection) {
      std::vector<std::int64_t> events;
      for (const RunTimes& run : found->second) events.push_back(run.events_ns);
      rejection =
          check_reference(reference.id, reference.alone_ns, summarise(std::move(events)).median_ns);
    }
  }
  return rejection;
}

/// Nobody is accused where others use the GPU.
std::optional<Rejection> Trial::check_clocks(const std::vector<ClockCalibration>& calibrations,
                                             const Runs& runs, std::vector<Witness>* witnesses) {
  std::optional<Rejection> rejection;
  for (std::size_t process = 0; process < calibrations.size(); ++process) {
    const std::vector<RunTimes>& times = runs.times()[process];
    if (times.empty()) continue;
    const Witness witness = witness_of(calibrations[process], times);
    if (witnesses) witnesses->push_back(witness);
    if (!rejection && !options_.shared_gpu) rejection = check_clock(witness);
  }
  return rejection;
}

std::optional<Rejection> Trial::judge_without_times(const ScheduleRequest& request) {
  Runs runs = begin(request);
  std::optional<Rejection> rejection;
  while (!rejection && runs.left() > 0) rejection = step(runs);
  runs.add_digests(*result_.evidence);
  for (const ReferenceState& reference : references_) {
    result_.references.push_back(describe(reference));
  }
  laps_.lap("runs");
  return rejection;
}

std::optional<Rejection> Trial::look_for_interruptions() {
  if (options_.shared_gpu || !instruments_.is_interrupted()) return std::nullopt;
  // A process that is only leaving the GPU, a monitor's say, interrupts once; what works on after
  // its end does so in every run that is watched.
  if (++interruptions_ == 1 && !instruments_.is_interrupted()) return std::nullopt;
  // Either something of the candidate works on after its end, or somebody else does. What is the
  // candidate's ends with its processes.
  instruments_.end_candidate();
  const auto patience = Clock::now() + farewell;
  while (instruments_.is_interrupted()) {
    if (Clock::now() > patience) throw SetupFailure(shared_gpu_message);
  }
  return Rejection{Status::forged_time,
                   "something of it still ran after its end: with its process it was gone"};
}

/// What is known of a reference but its time.
ReferenceResult Trial::describe(const ReferenceState& reference) const {
  ReferenceResult result;
  result.id = reference.id;
  result.details = reference.details;
  result.unavailable = reference.unavailable;
  if (auto found = reference_errors_.find(reference.id); found != reference_errors_.end()) {
    result.errors = found->second;
  }
  return result;
}

/// The headline against itself: what a ratio of 100% looks like on this machine.
void Trial::note_noise(const std::vector<std::int64_t>& repeated_headline) {
  const ReferenceResult* headline = result_.headline();
  result_.reference_noise_ppm = noise_ppm(headline->timing.samples_ns, repeated_headline);
  result_.repeated_headline_ns = repeated_headline;
}

std::optional<Rejection> Trial::time_beside_externals(
    const ScheduleRequest& request, const std::vector<ClockCalibration>& calibrations) {
  if (options_.external_references.empty()) return std::nullopt;
  const int block = std::max(1, options_.samples / external_blocks);
  for (std::size_t k = 0; k < options_.external_references.size(); ++k) {
    ReferenceResult result;
    result.id = options_.external_references[k];
    std::vector<std::int64_t> external_ns;
    ScheduleRequest wanted = request;
    wanted.timed = external_blocks * block;
    Runs runs = begin(wanted);
    std::optional<Rejection> rejection;
    for (int i = 0; i < external_blocks && result.unavailable.empty(); ++i) {
      Result<std::vector<std::int64_t>> times = instruments_.time_external(k, block);
      if (!times) {
        result.unavailable = times.error().message;
        break;
      }
      external_ns.insert(external_ns.end(), times->begin(), times->end());
      const std::size_t blocks_left = static_cast<std::size_t>(external_blocks - i);
      for (std::size_t n = runs.left() / blocks_left; n > 0 && !rejection; --n) {
        rejection = step(runs);
      }
      if (rejection) break;
    }
    runs.add_digests(*result_.evidence);
    if (!rejection) rejection = check_clocks(calibrations, runs, nullptr);
    if (rejection) return rejection;
    if (result.unavailable.empty()) {
      result.details = instruments_.external_details(k);
      result.percent_of_reference = percent_of_reference(external_ns, runs.events_ns());
      result.timing = summarise(std::move(external_ns));
      result.kernel_samples_ns = runs.events_ns();
    }
    result_.references.push_back(std::move(result));
  }
  laps_.lap("external");
  return std::nullopt;
}

void Trial::award_badges() {
  BadgeEvidence& evidence = *result_.evidence;
  for (const auto& [number, ratio] : stress_) {
    evidence.stress.emplace_back(problem_.stress_cases[static_cast<std::size_t>(number)].name,
                                 ratio);
  }
  for (const int number : stress_left_out_) {
    result_.stress_left_out.push_back(problem_.stress_cases[static_cast<std::size_t>(number)].name);
  }
  result_.badges.set(Badge::robust, options_.stress && stress_failure_.empty());
  if (!options_.stress) note_badge("robust: not tried");
  if (!stress_failure_.empty()) note_badge("robust: " + stress_failure_);
  result_.badges.set(Badge::deterministic, evidence.repeats_agree());
  if (!evidence.repeats_agree()) note_badge("deterministic: repeated runs differ");
  if (!options_.shared_gpu) return;
  result_.badges = {};
  result_.badge_notes.clear();
  for (const BadgeDescription& one : badge_table) {
    if (one.in_every_record) note_badge(std::string(one.name) + ": not given on a shared GPU");
  }
}

void Trial::note_badge(const std::string& reason) {
  result_.badge_notes += (result_.badge_notes.empty() ? "" : "; ") + reason;
}

}  // namespace rekernel
