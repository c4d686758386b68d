#include "harness/evaluation/trial.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "harness/evaluation/statistics.h"
#include "harness/evaluation/time.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int determinism_runs = 3;
/// Timed samples are judged as well: all of them where that takes no longer than the first, else a
/// random part, and never fewer than the second. Of a kernel that is wrong in every second sample,
/// and it takes as many to move a median, 12 judged ones miss one in 4096.
constexpr std::chrono::milliseconds timed_checks_budget{100};
constexpr int fewest_timed_checks = 12;
/// Timed samples after which somebody looks whether the GPU is idle.
constexpr std::size_t watched_samples = 4;
/// How long a process that was hung up on may take to leave the GPU.
constexpr std::chrono::seconds farewell{3};
constexpr int external_blocks = 5;

std::vector<std::int64_t> events_of(const std::vector<RunTimes>& runs) {
  std::vector<std::int64_t> events;
  for (const RunTimes& run : runs) events.push_back(run.events_ns);
  return events;
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, value);
  return text.data();
}

}  // namespace

std::optional<Rejection> Trial::check_seeds(int seeds) {
  result_.strict = rig_.problem.output().dtype == DType::f32;
  result_.evidence.emplace();
  if (!result_.strict) note_badge("strict asks for an FP32 output");
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = rig_.options.seed
                                   ? *rig_.options.seed + static_cast<std::uint64_t>(i)
                                   : rig_.sampler.fresh_seed();
    result_.seeds.push_back(seed);
    rig_.sampler.run(subject_, seed);
    const Checker::SameInputs same(rig_.checker);
    std::optional<ErrorStats> stats;
    const Clock::time_point start = Clock::now();
    if (auto rejection = rig_.checker.judge(*subject_.buffers, nullptr, &stats)) {
      if (!stats && rig_.options.mode == EvaluateOptions::Mode::errors) {
        stats = rig_.checker.measure_errors();  // of interest whatever else is wrong
      }
      result_.errors = stats;
      return rejection;
    }
    judgement_ = std::min(judgement_, Clock::now() - start);
    if (!result_.errors || stats->worst_tolerance_ratio > result_.errors->worst_tolerance_ratio) {
      result_.errors = stats;
    }
    compare_with_libraries(seed, *stats, i == 0);
  }
  rig_.laps.lap("checks");
  return std::nullopt;
}

/// The references' own errors on the same inputs: all of them on the first seed, the headline
/// wherever `strict` depends on it.
void Trial::compare_with_libraries(std::uint64_t seed, const ErrorStats& candidate,
                                   bool first_seed) {
  const bool strict_by_itself = candidate.worst_strict_ratio <= 1.0;
  double share = candidate.worst_strict_ratio;
  for (const PreparedReference& reference : rig_.references) {
    const bool headline = &reference == rig_.headline();
    const bool needed = headline && result_.strict && !strict_by_itself;
    if (!reference.unavailable.empty() || !(first_seed || needed)) continue;
    rig_.sampler.run(reference.subject, seed);
    const ErrorStats library = rig_.checker.measure_errors();
    if (first_seed) reference_errors_[reference.id] = library;
    if (headline) share = strict_share(candidate, &library);
  }
  if (!result_.strict) return;
  std::optional<double>& largest = result_.evidence->strict_share;
  if (!largest || !(share <= *largest)) largest = share;
  if (!(share <= 1.0)) {
    result_.strict = false;
    note_badge(
        "strict: an element misses 1e-4 + 1e-4·|truth|, and the error is more than twice "
        "the FP32 library's");
  }
}

/// The last run is made in a process that never saw these inputs: no copy of an earlier result can
/// pass for a repetition there, whatever keeps it.
std::optional<Rejection> Trial::check_determinism() {
  const std::uint64_t seed = rig_.sampler.fresh_seed();
  // What is loaded runs once at once, and must not meet these inputs then.
  rig_.inputs.fill(rig_.sampler.fresh_seed(), nullptr, rig_.stream);
  rig_.stream.synchronize();
  RemoteRunner& repetition = rig_.repetition();
  const Result<int> number = repetition.load(rig_.candidate, code_);
  if (!number) return Rejection{Status::launch_failed, number.error().message};
  const Subject elsewhere{&repetition, *number, subject_.buffers};
  const Checker::SameInputs same(rig_.checker);
  std::vector<std::string> digests;
  for (int i = 0; i < determinism_runs; ++i) {
    rig_.sampler.run(i == determinism_runs - 1 ? elsewhere : subject_, seed);
    digests.push_back(hexadecimal(rig_.checker.digest()));
    if (auto rejection = rig_.checker.judge(*subject_.buffers, nullptr, nullptr)) return rejection;
  }
  rig_.end_repetition();
  result_.evidence->digests = {digests};
  result_.deterministic = result_.evidence->repeats_agree();
  if (!result_.deterministic) note_badge("deterministic: repeated runs differ");
  rig_.laps.lap("determinism");
  return std::nullopt;
}

std::optional<Rejection> Trial::check_stress_inputs() {
  if (!rig_.options.stress) {
    note_badge("robust: not tried");
    return std::nullopt;
  }
  result_.robust = true;
  for (const StressCase& stress : rig_.problem.stress_cases) {
    rig_.sampler.run(subject_, rig_.sampler.fresh_seed(), &stress);
    std::optional<ErrorStats> stats;
    auto rejection = rig_.checker.judge(*subject_.buffers, &stress, &stats);
    if (stats) result_.evidence->stress.emplace_back(stress.name, stats->worst_tolerance_ratio);
    if (rejection) {
      if (rejection->status != Status::wrong_result) {
        rejection->message += " (on the stress inputs " + stress.name + ")";
        return rejection;
      }
      result_.robust = false;
      note_badge("robust: " + stress.name + ": " + rejection->message);
      break;
    }
  }
  rig_.laps.lap("stress");
  return std::nullopt;
}

std::optional<Rejection> Trial::judge_samples() {
  std::optional<Rejection> rejection;
  for (int i = 0; i < rig_.options.samples && !rejection; ++i) sample(true, rejection);
  rig_.laps.lap("samples");
  return rejection;
}

/// Which of so many timed samples of the candidate are judged.
std::set<int> Trial::unannounced_checks(int samples) {
  const std::int64_t affordable = timed_checks_budget / std::max(judgement_, Clock::duration(1));
  const auto count = static_cast<std::size_t>(
      std::min<std::int64_t>(samples, std::max<std::int64_t>(fewest_timed_checks, affordable)));
  return randomly_chosen(count, samples);
}

std::set<int> Trial::randomly_chosen(std::size_t count, int samples) {
  std::set<int> chosen;
  while (chosen.size() < std::min(count, static_cast<std::size_t>(samples))) {
    chosen.insert(
        static_cast<int>(rig_.sampler.fresh_seed() % static_cast<std::uint64_t>(samples)));
  }
  return chosen;
}

/// One timed sample of the candidate; the kernel cannot tell whether it will be `judged`.
RunTimes Trial::sample(bool judged, std::optional<Rejection>& rejection) {
  const RunTimes times = rig_.sampler.timed_run(subject_);
  if (judged) rejection = rig_.checker.judge(*subject_.buffers, nullptr, nullptr);
  if (rejection) {
    rejection->message += " (in a timed run)";
    if (!rejection->check.empty()) rejection->check += " in a timed run";
  }
  return times;
}

std::optional<Rejection> Trial::time_samples(const ClockCalibration& calibration) {
  const std::string candidate_name = "candidate";
  const std::string repeated_headline = "headline again";
  const std::set<int> checked = unannounced_checks(rig_.options.samples);
  const std::set<int> watched = randomly_chosen(watched_samples, rig_.options.samples);
  std::optional<Rejection> rejection;
  std::vector<RunTimes> runs;
  std::map<std::string, std::vector<RunTimes>> library_runs;

  std::vector<TimedSubject> subjects;
  subjects.push_back({candidate_name, [&] {
                        if (rejection) return std::int64_t{0};
                        const int number = static_cast<int>(runs.size());
                        runs.push_back(sample(checked.contains(number), rejection));
                        if (!rejection && watched.contains(number)) rejection = look_for_company();
                        return runs.back().events_ns;
                      }});
  const auto sample_of = [&](const PreparedReference& reference) {
    return [&] {
      std::vector<RunTimes>& runs_of_it = library_runs[reference.id];
      runs_of_it.push_back(rig_.sampler.timed_run(reference.subject));
      return runs_of_it.back().events_ns;
    };
  };
  for (const PreparedReference& reference : rig_.references) {
    if (reference.unavailable.empty()) subjects.push_back({reference.id, sample_of(reference)});
  }
  const PreparedReference* headline = rig_.headline();
  if (headline) subjects.push_back({repeated_headline, sample_of(*headline)});

  auto samples = measure_interleaved(subjects, rig_.options.samples);
  if (rejection) return rejection;
  result_.timing = summarise(events_of(runs));
  result_.witnesses = {witness_of(calibration, runs)};
  for (const PreparedReference& reference : rig_.references) {
    ReferenceResult found = describe(reference);
    if (reference.unavailable.empty()) {
      found.timing = summarise(samples.at(reference.id));
      found.percent_of_reference =
          percent_of_reference(found.timing.samples_ns, result_.timing->samples_ns);
    }
    result_.references.push_back(std::move(found));
  }
  if (headline) note_noise(samples[repeated_headline]);
  rig_.laps.lap("timing");
  rejection = check_clock(result_.witnesses.front());
  for (const PreparedReference& reference : rig_.references) {
    const std::vector<RunTimes>& library = library_runs[reference.id];
    if (rejection || library.empty()) continue;
    rejection = check_company(calibration, library);
    if (!rejection) {
      rejection = check_reference(reference.id, reference.alone_ns,
                                  summarise(events_of(library)).median_ns);
    }
  }
  return rejection;
}

std::optional<Rejection> Trial::look_for_company() {
  if (rig_.options.shared_gpu || !is_interrupted(rig_)) return std::nullopt;
  // A process that is only leaving the GPU, a monitor's say, interrupts once; what works on behind
  // its end does so in every run that is watched.
  if (++interruptions_ == 1 && !is_interrupted(rig_)) return std::nullopt;
  // Either something of the candidate works on after its end, or somebody else does. What is the
  // candidate's ends with its process.
  rig_.runner->hang_up();
  const auto patience = Clock::now() + farewell;
  while (is_interrupted(rig_)) {
    if (Clock::now() > patience) throw SetupFailure(shared_gpu_message);
  }
  return Rejection{Status::forged_time,
                   "something of it still ran after its end: with its process it was gone"};
}

/// What is known of a reference but its time.
ReferenceResult Trial::describe(const PreparedReference& reference) const {
  ReferenceResult result;
  result.id = reference.id;
  result.details = reference.details;
  result.unavailable = reference.unavailable;
  if (auto found = reference_errors_.find(reference.id); found != reference_errors_.end()) {
    result.errors = found->second;
  }
  return result;
}

void Trial::note_references_without_times() {
  for (const PreparedReference& reference : rig_.references) {
    result_.references.push_back(describe(reference));
  }
}

/// The headline against itself: what a ratio of 100% looks like on this machine.
void Trial::note_noise(const std::vector<std::int64_t>& repeated_headline) {
  const ReferenceResult* headline = result_.headline();
  result_.reference_noise_ppm = noise_ppm(headline->timing.samples_ns, repeated_headline);
  result_.repeated_headline_ns = repeated_headline;
}

std::optional<Rejection> Trial::time_external_references() {
  if (rig_.externals.empty()) return std::nullopt;
  const int block = std::max(1, rig_.options.samples / external_blocks);
  for (std::size_t k = 0; k < rig_.externals.size(); ++k) {
    ReferenceResult result;
    result.id = rig_.options.external_references[k];
    std::vector<std::int64_t> external_ns;
    std::vector<std::int64_t> candidate_ns;
    const std::set<int> checked = unannounced_checks(external_blocks * block);
    Result<std::unique_ptr<ExternalReference>> external = rig_.source.make_external(
        result.id, rig_.problem, {rig_.externals[k][0].release(), rig_.externals[k][1].release()},
        rig_.options.device);
    if (!external) result.unavailable = external.error().message;
    for (int i = 0; external && i < external_blocks; ++i) {
      Result<std::vector<std::int64_t>> times =
          (*external)->time_block(block, rig_.sampler.fresh_seed());
      if (!times) {
        result.unavailable = times.error().message;
        break;
      }
      external_ns.insert(external_ns.end(), times->begin(), times->end());
      for (int n = 0; n < block; ++n) {
        std::optional<Rejection> rejection;
        candidate_ns.push_back(sample(checked.contains(i * block + n), rejection).events_ns);
        if (rejection) return rejection;
      }
    }
    if (result.unavailable.empty()) {
      result.details = (*external)->details();
      result.percent_of_reference = percent_of_reference(external_ns, candidate_ns);
      result.timing = summarise(std::move(external_ns));
      result.kernel_samples_ns = std::move(candidate_ns);
    }
    result_.references.push_back(std::move(result));
  }
  rig_.laps.lap("external");
  return std::nullopt;
}

void Trial::note_badge(const std::string& reason) {
  result_.badge_notes += (result_.badge_notes.empty() ? "" : "; ") + reason;
}

}  // namespace rekernel
