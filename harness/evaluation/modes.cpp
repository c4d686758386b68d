#include "harness/evaluation/modes.h"

#include <algorithm>

#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/rig_instruments.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/evaluation/time.h"
#include "harness/evaluation/trial.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

constexpr int diagnosis_runs = 3;

void expect_idle_gpu(const Rig& rig) {
  if (rig.options.shared_gpu) return;
  // One that leaves the GPU interrupts once.
  if (is_interrupted(rig) && is_interrupted(rig)) throw SetupFailure(shared_gpu_message);
}

std::optional<Rejection> judge(Rig& rig, Trial& trial, std::chrono::nanoseconds judgement,
                               const std::vector<ClockCalibration>& calibrations,
                               Evaluation& result) {
  std::optional<Rejection> rejection =
      trial.time(verdict_schedule(rig.problem, rig.options, judgement), calibrations);
  if (!rejection) {
    rejection = trial.time_beside_externals(external_schedule(rig.problem, rig.options, judgement),
                                            calibrations);
  }
  if (!rejection) {
    rejection = check_plausibility(result.least_median_ns(), rig.problem, rig.device.properties());
  }
  if (!rejection) rejection = trial.look_for_interruptions();
  trial.award_badges();
  result.conditions = rig.sampler.conditions();
  return rejection;
}

std::optional<Rejection> measure_errors(const Rig& rig, Trial& trial) {
  std::optional<Rejection> rejection =
      trial.judge_without_times(errors_schedule(rig.problem, rig.options));
  trial.award_badges();
  return rejection;
}

/// Words of an output that a kernel which tells what it sees may use.
constexpr std::size_t seen_words = 64;

/// The runs of a verdict, judged and timed as there, of a kernel whose output is no result.
void observe(Rig& rig, Instruments& instruments, Trial& trial,
             const std::vector<ClockCalibration>& calibrations, std::vector<Sighting>& sightings) {
  trial.observe([&](const PlannedRun& run) {
    sightings.push_back(
        {run.purpose, run.process, run.judged, instruments.first_words(seen_words)});
  });
  trial.time(blinding_schedule(rig.problem, rig.options), calibrations);
}

/// To which buffer was written where nothing may be.
std::optional<Rejection> diagnose(Rig& rig, const Subject& subject) {
  for (int run = 0; run < diagnosis_runs; ++run) {
    const std::uint64_t seed = rig.sampler.fresh_seed();
    std::optional<RunnerFailure> failure;
    try {
      rig.sampler.run(subject, seed);
    } catch (const RunnerFailure& caught) {
      if (caught.kind() == RunnerFailure::Kind::late) throw;  // guards cannot be read meanwhile
      failure = caught;
    }
    for (const Buffers* buffers :
         {static_cast<Buffers*>(subject.buffers), static_cast<Buffers*>(&rig.inputs)}) {
      if (auto name = buffers->find_damaged_guard(rig.tools, rig.stream)) {
        return Rejection{Status::out_of_bounds_write, "wrote past the bounds of '" + *name + "'"};
      }
    }
    if (auto name = rig.inputs.find_modified(seed, nullptr, rig.stream)) {
      return Rejection{Status::modified_input, "changed the input '" + *name + "'"};
    }
    if (failure) throw *failure;
  }
  return std::nullopt;
}

/// The subject of an A/A experiment in one of the two processes.
Subject noise_subject(Rig& rig, RemoteRunner& runner) {
  const RemoteRunner::Reference made =
      or_setup_failure(runner.make_reference(rig.problem.id, rig.options.noise_subject));
  return {&runner, made.subject, &rig.candidate_buffers};
}

/// The same work as two subjects, in the candidate's process and in the libraries', by the code
/// that times a candidate and its references.
void time_against_itself(Rig& rig, const Subject& first, const Subject& second,
                         EvaluationReport& report) {
  const auto sample_of = [&](const Subject& subject) {
    return [&] {
      std::uint64_t seed = rig.sampler.fresh_seed();
      return rig.sampler.timed_run(subject, seed).events_ns;
    };
  };
  for (int run = 0; run < rig.options.noise_runs; ++run) {
    auto samples = measure_interleaved({{"first", sample_of(first), rig.options.samples},
                                        {"second", sample_of(second), rig.options.samples}});
    report.noise.push_back({std::move(samples["first"]), std::move(samples["second"])});
  }
  expect_idle_gpu(rig);
  report.evaluation.conditions = rig.sampler.conditions();
  rig.laps.lap("noise");
}

void begin(const Rig& rig, const Occasion& occasion) {
  occasion.started(rig.libraries ? rig.libraries->new_cache_entries() : "");
}

std::optional<Rejection> run_noise(Rig& rig, const Occasion& occasion, EvaluationReport& report) {
  expect_idle_gpu(rig);
  if (!rig.options.noise_subject.empty()) {
    const Subject first = noise_subject(rig, *rig.runners.front());
    const Subject second = noise_subject(rig, *rig.libraries);
    begin(rig, occasion);
    time_against_itself(rig, first, second, report);
    ReferenceResult reference;
    reference.id = rig.options.noise_subject;
    if (!rig.references.empty()) reference.details = rig.references.front().details;
    report.evaluation.references.push_back(std::move(reference));
    return std::nullopt;
  }
  const CompileOutcome outcome = or_setup_failure(occasion.compiled());
  const LoadedCandidate loaded = load_candidate_code(rig, outcome, report.evaluation);
  if (loaded.rejection) return loaded.rejection;
  const Subject second{rig.libraries,
                       or_setup_failure(rig.libraries->load(rig.candidate, *outcome.program)),
                       &rig.candidate_buffers};
  begin(rig, occasion);
  const Subject first = loaded.subjects.front();
  rig.sampler.run(first, rig.sampler.fresh_seed());
  const Judgement judgement = rig.checker.judge(rig.candidate_buffers, nullptr);
  if (judgement.rejection) return judgement.rejection;
  time_against_itself(rig, first, second, report);
  return std::nullopt;
}

/// From a complete rig to a status.
std::optional<Rejection> run_mode(Rig& rig, const Occasion& occasion, EvaluationReport& report) {
  if (auto rejection = rig.check_architecture()) return rejection;
  if (rig.options.mode == Mode::noise) return run_noise(rig, occasion, report);
  std::vector<ClockCalibration> calibrations;
  std::chrono::nanoseconds judgement{0};
  const bool calibrates = rig.options.mode == Mode::verdict || rig.options.mode == Mode::sizes ||
                          rig.options.mode == Mode::blinding;
  if (calibrates) {
    expect_idle_gpu(rig);
    report.evaluation.ceilings.copy_bytes_per_s =
        measure_copy_rate(rig.tools, rig.device.properties(), rig.stream);
    report.evaluation.ceilings.fp16_flops_per_s = rig.matrix_rate;
    report.evaluation.ceiling_ns = ceiling_ns(rig.problem, report.evaluation.ceilings);
    report.evaluation.speed_of_light_ns = speed_of_light_ns(rig.problem, rig.device.properties());
    rig.laps.lap("ceilings");
    calibrations = calibrate_clocks(rig);
    judgement = time_of_judgement(rig);
  }
  const CompileOutcome outcome = or_setup_failure(occasion.compiled());
  rig.laps.lap("compile");
  begin(rig, occasion);
  const LoadedCandidate loaded = load_candidate_code(rig, outcome, report.evaluation);
  if (loaded.rejection) return loaded.rejection;
  if (rig.options.mode == Mode::diagnosis) return diagnose(rig, loaded.subjects.front());
  RigInstruments instruments(rig, loaded.subjects);
  Trial trial(instruments, rig.problem, rig.options, rig.references, rig.laps, report.evaluation);
  if (rig.options.mode == Mode::errors) return measure_errors(rig, trial);
  if (rig.options.mode == Mode::blinding) {
    observe(rig, instruments, trial, calibrations, report.sightings);
    return std::nullopt;
  }
  return judge(rig, trial, judgement, calibrations, report.evaluation);
}

void note_status(const std::optional<Rejection>& rejection, Evaluation& result) {
  result.status = rejection ? rejection->status : Status::passed;
  if (!rejection) return;
  result.message = rejection->message;
  result.check = rejection->check;
}

/// Runs the work and turns its failures into a report.
template <class Work>
EvaluationReport reported(const Candidate& candidate, Work work) {
  EvaluationReport report = blank_report(candidate);
  try {
    work(report);
  } catch (const SetupFailure& failure) {
    report.failure = failure.what();
  } catch (const CudaError& error) {
    report.failure = error.what();  // of our own context: no candidate is in it
  }
  note_judge(report.evaluation);
  return report;
}

}  // namespace

EvaluationReport evaluate_with(const Occasion& occasion, const Device& device,
                               Connections& connections) {
  return reported(occasion.candidate, [&](EvaluationReport& report) {
    Laps laps(report.evaluation.split_ns);
    Rig rig(occasion.candidate, occasion.problem, occasion.options, occasion.references, device,
            connections, report, laps);
    try {
      note_status(run_mode(rig, occasion, report), report.evaluation);
    } catch (const RunnerFailure& failure) {
      if (rig.libraries && failure.is_of(*rig.libraries)) {
        throw SetupFailure(std::string("the libraries' process: ") + failure.what());
      }
      note_status(failure.rejection(), report.evaluation);
      report.faulted = failure.kind() == RunnerFailure::Kind::faulted;
      if (failure.kind() == RunnerFailure::Kind::gone) {
        for (std::size_t i = 0; i < rig.runners.size(); ++i) {
          if (failure.is_of(*rig.runners[i])) report.gone_runner = static_cast<int>(i);
        }
      }
    }
    const bool stays = connections.candidate_stays && report.evaluation.status == Status::passed;
    if (!stays) rig.hang_up();
    note_judge(report.evaluation);
    occasion.finished(report);
    if (rig.libraries) rig.libraries->forget();
    if (!stays) return;
    for (RemoteRunner* runner : rig.runners) runner->forget();
  });
}

EvaluationReport run_once(const Occasion& occasion) {
  return reported(occasion.candidate, [&](EvaluationReport& report) {
    Evaluation& result = report.evaluation;
    const Device device = or_setup_failure(Device::open(evaluated_gpu));
    const DeviceProperties& properties = device.properties();
    report.device = properties;
    result.target = Compiler::target_for_device(properties.major, properties.minor);
    OwnPrograms programs(occasion.problem, result.target);
    const Stream stream;
    const DeviceTools tools(or_setup_failure(programs.tools.get()), properties);
    const InputBuffers inputs =
        programs.make_inputs(occasion.problem, tools, Surroundings::nothing, properties);
    const SubjectBuffers buffers(occasion.problem, occasion.candidate.program.workspaces,
                                 Surroundings::nothing);
    Checker checker =
        programs.make_checker(occasion.problem, inputs, tools, nullptr, properties, stream);
    const CompileOutcome outcome = or_setup_failure(occasion.compiled());
    if (!outcome.program) return note_status(Rejection{outcome.status, outcome.message}, result);
    Bindings bindings = inputs.bindings();
    for (const auto& [name, view] : buffers.bindings()) bindings[name] = view;
    Result<std::unique_ptr<Runnable>> runnable =
        make_runnable(occasion.candidate.program, *outcome.program, bindings, properties);
    if (!runnable) {
      return note_status(Rejection{Status::launch_failed, runnable.error().message}, result);
    }
    const std::uint64_t seed = occasion.options.seed.value_or(1);
    result.seeds.push_back(seed);
    inputs.fill(seed, nullptr, stream);
    occasion.started("");
    try {
      (*runnable)->enqueue(stream.get());
      stream.synchronize();
    } catch (const CudaError& error) {
      return note_status(Rejection{Status::crashed, error.what()}, result);
    }
    for (const auto& [name, output] : buffers.outputs()) {
      tools.copy(checker.snapshots().at(name), output, stream);
    }
    const Judgement judgement = checker.judge(buffers, nullptr);
    result.errors = judgement.stats;
    note_status(judgement.rejection, result);
  });
}

}  // namespace rekernel
