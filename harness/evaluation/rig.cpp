#include "harness/evaluation/rig.h"

#include <algorithm>
#include <chrono>

#include "harness/base/text.h"
#include "harness/candidate/library_kernels.h"
#include "harness/compile/compile.h"
#include "harness/evaluation/calibration.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/statistics.h"
#include "ops/inputs.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

constexpr std::int64_t matrix_extent = 8192;
/// A kernel that watches the clock all the time is not kept from it for so long on a GPU that it
/// has for itself: slices of time are longer by orders of magnitude.
constexpr std::int64_t longest_pause_ns = 100000;
/// Rounds until which the handover has to be at rest; then the last ones count as they are.
constexpr std::size_t most_calibration_rounds = 24;
/// Of draws by a problem's program: timed runs, references, repeats and stress inputs.
constexpr double runs_for_each_sample = 4;
constexpr double share_for_draws = 0.5;  ///< of the run deadline
constexpr int reference_warm_ups = 1;
constexpr int reference_runs = 12;

Surroundings surroundings_of(const EvaluateOptions& options) {
  return options.mode == Mode::diagnosis ? Surroundings::bands : Surroundings::hole;
}

const Device& checked(const Device& device, EvaluationReport& report) {
  or_setup_failure(check_memory_sharing(evaluated_gpu));
  report.device = device.properties();
  return device;
}

std::optional<GpuMonitor> monitor_of(const Device& device) {
  Result<GpuMonitor> monitor = GpuMonitor::open(device.properties().uuid);
  if (!monitor) return std::nullopt;
  return std::move(*monitor);
}

}  // namespace

OwnPrograms::OwnPrograms(const Problem& problem, const std::string& target) {
  const Compiler compiler = or_setup_failure(Compiler::load());
  const std::string header = problem_header(problem);
  auto start = [&](const Program& program) {
    return std::async(std::launch::async, [compiler, program, header, target] {
      return compiler.compile(program, header, target);
    });
  };
  tools = start(device_tools_program());
  if (!problem.program) oracle = start(problem.device_oracle);
  calibration = start(known_works(problem).front().candidate.program);
  if (!problem.making.steps.empty()) making = start(problem.making);
  for (const Invariant& invariant : problem.invariants) {
    invariants.push_back(start(invariant.program));
  }
}

InputBuffers OwnPrograms::make_inputs(const Problem& problem, const DeviceTools& device_tools,
                                      Surroundings surroundings, const DeviceProperties& device) {
  if (!making.valid()) return {problem, device_tools, surroundings};
  const CompiledProgram compiled = or_setup_failure(making.get());
  const InputBuffers::Making made{compiled, device};
  return {problem, device_tools, surroundings, &made};
}

Checker OwnPrograms::make_checker(const Problem& problem, const InputBuffers& inputs,
                                  const DeviceTools& device_tools, Channel* truth_program,
                                  const DeviceProperties& device, const Stream& stream) {
  std::vector<CompiledInvariant> compiled;
  for (std::size_t i = 0; i < problem.invariants.size(); ++i) {
    compiled.push_back({&problem.invariants[i], or_setup_failure(invariants[i].get())});
  }
  if (!oracle.valid()) {
    return {problem, inputs, device_tools, {nullptr, truth_program}, compiled, device, stream};
  }
  const CompiledProgram truth = or_setup_failure(oracle.get());
  return {problem, inputs, device_tools, {&truth, nullptr}, compiled, device, stream};
}

Rig::Rig(const Candidate& candidate, const Problem& problem, const EvaluateOptions& options,
         const ReferenceSource& source, const Device& opened, Connections& connections,
         EvaluationReport& report, Laps& laps)
    : candidate(candidate),
      problem(problem),
      options(options),
      source(source),
      laps(laps),
      device(checked(opened, report)),
      target(Compiler::target_for_device(device.properties().major, device.properties().minor)),
      programs(problem, target),
      monitor(monitor_of(device)),
      tools(or_setup_failure(programs.tools.get()), device.properties()),
      inputs(programs.make_inputs(problem, tools, surroundings_of(options), device.properties())),
      checker(programs.make_checker(problem, inputs, tools, connections.truth, device.properties(),
                                    stream)),
      sampler(inputs, tools, device.properties(), stream, checker.snapshots()),
      candidate_buffers(problem, candidate.program.workspaces, surroundings_of(options)),
      externals(connections.externals),
      candidate_processes_(connections.candidate) {
  report.evaluation.target = target;
  // Where no time is kept, a throttled sample is as good as another.
  if (monitor && options.takes_times()) sampler.watch(*monitor);
  inputs.draw_by(checker.program_draws());
  // Libraries choose their engines on real values.
  inputs.fill(sampler.fresh_seed(), nullptr, stream);
  stream.synchronize();
  if (problem.program && !problem.program->draws.empty()) check_time_of_draws();
  laps.lap("referee");

  for (PendingRunner& process : candidate_processes_) {
    runners.push_back(connected(process));
    runners.back()->wait_at_most(&time_of_candidate);
    lend_to_candidate(*runners.back());
  }
  laps.lap("runners");
  if (connections.libraries) prepare_libraries(*connections.libraries);
}

void Rig::prepare_libraries(PendingRunner& process) {
  libraries = connected(process);
  measure_matrix_rate();
  if (options.mode != Mode::noise) {
    library_buffers.emplace(problem, std::vector<Workspace>{}, Surroundings::hole);
  }
  libraries->lend(inputs, Access::read);
  libraries->lend(buffers_of_libraries(), Access::read_and_write);
  prepare_references();
  laps.lap("libraries");
}

/// What the program takes is known before, so that no evaluation meets its deadline for that.
void Rig::check_time_of_draws() {
  const auto start = std::chrono::steady_clock::now();
  inputs.fill(sampler.fresh_seed(), nullptr, stream);
  const std::chrono::duration<double> once = std::chrono::steady_clock::now() - start;
  const auto runs = static_cast<double>(options.samples) * runs_for_each_sample;
  const std::chrono::duration<double> most = options.run_deadline;
  if (once * runs <= most * share_for_draws) return;
  throw SetupFailure("get_inputs() of '" + problem.id + "' takes " + printed("%.2g", once.count()) +
                     " s: expected at most " +
                     printed("%.2g", most.count() * share_for_draws / runs) + " s");
}

void Rig::measure_matrix_rate() {
  if (options.mode != Mode::verdict || problem.matrix_products == 0) return;
  if (source.matrix_rate_reference.empty()) return;
  const Problem product = matrix_rate_product(matrix_extent);
  const InputBuffers factors(product, tools, Surroundings::hole);
  const SubjectBuffers result(product, {}, Surroundings::hole);
  factors.fill(sampler.fresh_seed(), nullptr, stream);
  stream.synchronize();
  libraries->lend(factors, Access::read);
  libraries->lend(result, Access::read_and_write);
  const Result<std::int64_t> rate =
      libraries->measure_matrix_rate(source.matrix_rate_reference, matrix_extent);
  if (rate) matrix_rate = *rate;  // else the ceiling counts bytes alone
  libraries->forget();
}

SubjectBuffers& Rig::buffers_of_libraries() {
  return library_buffers ? *library_buffers : candidate_buffers;
}

void Rig::lend_to_candidate(RemoteRunner& runner) {
  runner.lend(inputs, options.mode == Mode::diagnosis ? Access::read_and_write : Access::read);
  runner.lend(candidate_buffers, Access::read_and_write);
}

void Rig::prepare_references() {
  for (const std::string& id : options.references) {
    ReferenceState reference{id, {}, {}};
    Subject subject;
    Result<RemoteRunner::Reference> made = libraries->make_reference(problem.id, id);
    if (made) {
      reference.details = std::move(made->details);
      subject = {libraries, made->subject, &buffers_of_libraries()};
    } else {
      reference.unavailable = made.error().message;
    }
    references.push_back(std::move(reference));
    reference_subjects.push_back(subject);
  }
}

RemoteRunner* Rig::connected(PendingRunner& process) const {
  return or_setup_failure(process.ready(options.startup_deadline));
}

void Rig::hang_up() {
  for (PendingRunner& process : candidate_processes_) process.hang_up();
}

std::optional<Rejection> Rig::check_architecture() const {
  const DeviceProperties& properties = device.properties();
  if (runs_on(candidate.arch, properties.major, properties.minor)) return std::nullopt;
  return Rejection{Status::launch_failed, std::string("the kernel needs ") +
                                              to_string(candidate.arch) + ", " + properties.name +
                                              " is " + target};
}

std::size_t candidate_processes(const EvaluateOptions& options) {
  switch (options.mode) {
    case Mode::once:
      return 0;
    case Mode::noise:
    case Mode::diagnosis:
      return 1;
    case Mode::verdict:
    case Mode::errors:
    case Mode::sizes:
    case Mode::blinding:
      break;
  }
  return 2;
}

bool needs_libraries(const EvaluateOptions& options, const Problem& problem) {
  return !options.references.empty() || options.mode == Mode::noise ||
         (options.mode == Mode::verdict && problem.matrix_products > 0);
}

bool needs_truth_program(const EvaluateOptions& options, const Problem& problem) {
  return problem.program != nullptr && options.mode != Mode::once;
}

namespace {

/// Works in rows, the candidate's processes in columns.
std::vector<std::vector<Subject>> known_subjects(Rig& rig, const std::vector<KnownWork>& works) {
  const CompiledProgram code = or_setup_failure(rig.programs.calibration.get());
  std::vector<std::vector<Subject>> subjects(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    for (RemoteRunner* runner : rig.runners) {
      subjects[i].push_back({runner, or_setup_failure(runner->load(works[i].candidate, code)),
                             &rig.candidate_buffers});
    }
  }
  return subjects;
}

/// Rounds of all works in all processes, so that the same moments count for each: the first one
/// warms up, and the last ones count once the handover is at rest.
std::vector<CalibrationRound> calibration_runs(Rig& rig,
                                               const std::vector<std::vector<Subject>>& subjects) {
  std::vector<CalibrationRound> rounds;
  bool warm = false;
  while (rounds.size() < most_calibration_rounds && !is_steady(rounds)) {
    CalibrationRound round;
    for (const std::vector<Subject>& of_work : subjects) {
      for (const Subject& subject : of_work) {
        round.push_back(rig.sampler.run(subject, rig.sampler.fresh_seed()));
      }
    }
    if (warm) rounds.push_back(std::move(round));
    warm = true;
  }
  rounds.erase(rounds.begin(), rounds.end() - std::ptrdiff_t{calibration_rounds});
  return rounds;
}

/// A library's time while no code of a candidate is there.
std::int64_t time_alone(Rig& rig, const Subject& reference) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < reference_warm_ups + reference_runs; ++i) {
    const RunTimes run = rig.sampler.run(reference, rig.sampler.fresh_seed());
    if (i >= reference_warm_ups) times.push_back(run.events_ns);
  }
  return summarise(std::move(times)).median_ns;
}

}  // namespace

std::vector<ClockCalibration> calibrate_clocks(Rig& rig) {
  const std::vector<KnownWork> works = known_works(rig.problem);
  const std::vector<CalibrationRound> rounds = calibration_runs(rig, known_subjects(rig, works));
  for (std::size_t i = 0; i < rig.references.size(); ++i) {
    if (!rig.references[i].unavailable.empty()) continue;
    rig.references[i].alone_ns = time_alone(rig, rig.reference_subjects[i]);
  }
  for (RemoteRunner* runner : rig.runners) {
    runner->forget();
    rig.lend_to_candidate(*runner);
  }
  std::vector<ClockCalibration> calibrations;
  for (std::size_t process = 0; process < rig.runners.size(); ++process) {
    std::vector<std::pair<std::string, std::vector<RunTimes>>> runs;
    for (std::size_t work = 0; work < works.size(); ++work) {
      runs.emplace_back(works[work].name, std::vector<RunTimes>());
      for (const CalibrationRound& round : rounds) {
        runs.back().second.push_back(round[work * rig.runners.size() + process]);
      }
    }
    calibrations.push_back(calibrate(runs));
  }
  rig.laps.lap("calibration");
  return calibrations;
}

LoadedCandidate load_candidate_code(Rig& rig, const CompileOutcome& outcome, Evaluation& result) {
  LoadedCandidate loaded;
  if (!outcome.program) {
    loaded.rejection = {outcome.status, outcome.message};
    return loaded;
  }
  result.resources = launched_kernels(rig.candidate.program, *outcome.program);
  result.libraries = libraries_of(rig.candidate.program);
  result.compile_log = outcome.program->log;
  const Result<Ok> launches =
      check_launches(rig.candidate.program, *outcome.program, rig.candidate.name);
  if (!launches) {
    loaded.rejection = {Status::invalid_plan, launches.error().message};
    return loaded;
  }
  for (RemoteRunner* runner : rig.runners) {
    const Result<int> subject = runner->load(rig.candidate, *outcome.program);
    if (!subject) {
      loaded.rejection = {Status::launch_failed, subject.error().message};
      break;
    }
    loaded.subjects.push_back({runner, *subject, &rig.candidate_buffers});
  }
  rig.laps.lap("load");
  return loaded;
}

bool is_interrupted(const Rig& rig) { return rig.sampler.longest_pause_ns() > longest_pause_ns; }

}  // namespace rekernel
