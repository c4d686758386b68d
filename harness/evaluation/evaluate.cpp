#include "harness/evaluation/evaluate.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/compile/compile.h"
#include "harness/device/device_tools.h"
#include "harness/device/problem_buffers.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/check.h"
#include "harness/evaluation/sampler.h"
#include "harness/evaluation/statistics.h"
#include "harness/evaluation/time.h"
#include "harness/gpu/nvml.h"
#include "harness/process/isolate.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int determinism_runs = 3;
/// Timed samples are judged as well: all of them where that takes no longer than the first, else a
/// random part, and never fewer than the second.
constexpr std::chrono::seconds timed_checks_budget{4};
constexpr int fewest_timed_checks = 12;
constexpr int external_blocks = 5;
/// `strict` by comparison: this many times the FP32 library's own error.
constexpr double strict_share_of_library_error = 2.0;

/// A failure of the set-up, not of the candidate.
class SetupFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T or_setup_failure(Result<T> result) {
  if (!result) throw SetupFailure(result.error().message);
  return std::move(*result);
}

/// Our own programs, which compile in the background from the start. The candidate's source never
/// comes near this process's compiler.
struct Compilation {
  std::future<Result<CompiledProgram>> tools;
  std::future<Result<CompiledProgram>> oracle;
  std::vector<std::future<Result<CompiledProgram>>> invariants;
};

Compilation start_compiling(const Compiler& compiler, const Problem& problem,
                            const std::string& target) {
  const std::string header = problem_header(problem);
  auto start = [&](const Program& program) {
    return std::async(std::launch::async, [compiler, program, header, target] {
      return compiler.compile(program, header, target);
    });
  };
  Compilation compilation;
  compilation.tools = start(device_tools_program());
  compilation.oracle = start(problem.device_oracle);
  for (const Invariant& invariant : problem.invariants) {
    compilation.invariants.push_back(start(invariant.program));
  }
  return compilation;
}

/// Whether the driver refused to start the work, as against the work failing on the device.
bool is_refused_launch(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return true;
    default:
      return false;
  }
}

struct PreparedReference {
  std::string id;
  std::unique_ptr<Runnable> runnable;  ///< null when it could not be made
  std::string unavailable;
};

/// One evaluation, a method a phase. A phase that rejects the candidate ends it.
class EvaluationRun {
 public:
  EvaluationRun(const Candidate& candidate, const Problem& problem, const EvaluateOptions& options,
                const ReferenceSource& references,
                const std::function<Result<CompileOutcome>()>& compiled, EvaluationReport& report)
      : candidate_(candidate),
        problem_(problem),
        options_(options),
        source_(references),
        compiled_(compiled),
        report_(report),
        result_(report.evaluation) {}

  void run(const std::function<void()>& started) {
    std::optional<Rejection> rejection = set_up();
    if (!rejection) {
      if (times_count()) measure_ceilings();
      started();
      rejection = judge_and_time();
    }
    result_.status = rejection ? rejection->status : Status::passed;
    if (rejection) result_.message = rejection->message;
  }

 private:
  /// Whether this run ends in a time that the floor must allow.
  bool times_count() const { return !options_.once && options_.timing && options_.noise_runs == 0; }

  std::optional<Rejection> set_up() {
    open_device();
    const DeviceProperties& device = device_->properties();
    if (!runs_on(candidate_.arch, device.major, device.minor)) {
      return Rejection{Status::launch_failed, std::string("the kernel needs ") +
                                                  to_string(candidate_.arch) + ", " + device.name +
                                                  " is " + result_.target};
    }
    Compilation compilation =
        start_compiling(or_setup_failure(Compiler::load()), problem_, result_.target);
    allocate(compilation);
    prepare_references();
    return load_candidate_code(compilation);
  }

  std::optional<Rejection> judge_and_time() {
    if (options_.once) return check_seeds_in_turn(1);
    if (options_.noise_runs > 0) return time_against_itself();
    if (!options_.timing) return check_without_timing();
    std::optional<Rejection> rejection = check_output();
    if (!rejection) rejection = time_samples();
    if (!rejection) rejection = time_external_references();
    if (!rejection) {
      rejection = check_plausibility(result_.timing->median_ns, problem_, report_.ceilings,
                                     device_->properties());
    }
    result_.conditions = sampler_->conditions();
    return rejection;
  }

  /// Everything that the output alone can show, before any time is taken.
  std::optional<Rejection> check_output() {
    std::optional<Rejection> rejection = check_seeds_in_turn(options_.check_seeds);
    if (!rejection) rejection = check_determinism();
    if (!rejection) rejection = check_stress_inputs();
    return rejection;
  }

  std::optional<Rejection> check_without_timing() {
    std::optional<Rejection> rejection = check_output();
    for (int i = 0; i < options_.samples && !rejection; ++i) time_candidate(true, rejection);
    lap("samples");
    if (rejection && rejection->status == Status::out_of_bounds_write && !result_.errors) {
      result_.errors = checker_->measure_errors();  // the inputs are whole: it comes after
    }
    for (const PreparedReference& reference : references_) {
      ReferenceResult result;
      result.id = reference.id;
      result.unavailable = reference.unavailable;
      note_reference(reference, result);
      result_.references.push_back(std::move(result));
    }
    return rejection;
  }

  /// The A/A experiment: the same work as two subjects, by the code that times a candidate and its
  /// references.
  std::optional<Rejection> time_against_itself() {
    Runnable* subject = runnable_.get();
    if (options_.noise_subject.empty()) {
      if (auto rejection = check_seeds_in_turn(1)) return rejection;
    } else {
      subject = &noise_reference();
    }
    const auto sample = [&] { return sampler_->timed_run(*subject); };
    for (int run = 0; run < options_.noise_runs; ++run) {
      auto samples = measure_interleaved({{"first", sample}, {"second", sample}}, options_.samples);
      report_.noise.push_back({std::move(samples["first"]), std::move(samples["second"])});
    }
    result_.conditions = sampler_->conditions();
    lap("noise");
    return std::nullopt;
  }

  Runnable& noise_reference() {
    for (const PreparedReference& reference : references_) {
      if (reference.id != options_.noise_subject) continue;
      if (!reference.runnable) throw SetupFailure(reference.id + ": " + reference.unavailable);
      ReferenceResult result;
      result.id = reference.id;
      note_reference(reference, result);
      result_.references.push_back(std::move(result));
      return *reference.runnable;
    }
    throw SetupFailure("no reference '" + options_.noise_subject + "'");
  }

  void open_device() {
    device_.emplace(or_setup_failure(Device::open(options_.device)));
    report_.device = device_->properties();
    result_.target =
        Compiler::target_for_device(device_->properties().major, device_->properties().minor);
    stream_.emplace();
    if (Result<GpuMonitor> monitor = GpuMonitor::open(device_->properties().uuid)) {
      monitor_ = std::move(*monitor);
    }
    lap("device");
  }

  void allocate(Compilation& compilation) {
    const CompiledProgram tools = or_setup_failure(compilation.tools.get());
    tools_.emplace(tools, device_->properties());
    buffers_.emplace(problem_, candidate_.program.workspaces, *tools_);
    sampler_.emplace(*buffers_, *tools_, device_->properties(), *stream_);
    // Where no time is kept, a throttled sample is as good as another.
    if (monitor_ && options_.timing) sampler_->watch(*monitor_);
    // Libraries choose their engines on real values.
    buffers_->fill_inputs(sampler_->fresh_seed(), nullptr, *stream_);
    stream_->synchronize();
    lap("buffers");
  }

  void prepare_references() {
    for (const std::string& id : options_.references) {
      PreparedReference prepared{id, nullptr, {}};
      Result<std::unique_ptr<Runnable>> made =
          source_.make(id, problem_, buffers_->bindings(), *device_);
      if (made) {
        prepared.runnable = std::move(*made);
      } else {
        prepared.unavailable = made.error().message;
      }
      references_.push_back(std::move(prepared));
    }
    lap("references");
  }

  std::optional<Rejection> load_candidate_code(Compilation& compilation) {
    CompileOutcome outcome = or_setup_failure(compiled_());
    if (!outcome.program) return Rejection{outcome.status, outcome.message};
    const CompiledProgram& compiled = *outcome.program;
    result_.resources = compiled.kernels;
    result_.compile_log = compiled.log;
    Result<Ok> launches = check_launches(candidate_.program, compiled, candidate_.name);
    if (!launches) return Rejection{Status::invalid_plan, launches.error().message};

    const CompiledProgram oracle = or_setup_failure(compilation.oracle.get());
    std::vector<CompiledInvariant> invariants;
    for (std::size_t i = 0; i < problem_.invariants.size(); ++i) {
      invariants.push_back(
          {&problem_.invariants[i], or_setup_failure(compilation.invariants[i].get())});
    }
    lap("compile");
    checker_.emplace(problem_, *buffers_, *tools_, oracle, invariants, device_->properties(),
                     *stream_);
    candidate_code_ = std::move(*outcome.program);
    std::optional<Rejection> rejection = load_module();
    lap("load");
    return rejection;
  }

  /// Anew, if it is loaded already: its global variables begin again as the source says.
  std::optional<Rejection> load_module() {
    runnable_.reset();
    try {
      Result<std::unique_ptr<Runnable>> runnable = make_runnable(
          candidate_.program, candidate_code_, buffers_->bindings(), device_->properties());
      if (!runnable) return Rejection{Status::launch_failed, runnable.error().message};
      runnable_ = std::move(*runnable);
      return std::nullopt;
    } catch (const CudaError& error) {
      return Rejection{Status::launch_failed, error.what()};
    }
  }

  void measure_ceilings() {
    report_.ceilings.copy_bytes_per_s = measure_copy_rate(*tools_, device_->properties(), *stream_);
    if (problem_.matrix_products > 0) {
      report_.ceilings.fp16_flops_per_s = measure_fp16_rate(*tools_, source_, *device_, *stream_);
    }
    result_.floor_ns = floor_ns(problem_, report_.ceilings, problem_.matrix_products);
    lap("ceilings");
  }

  std::optional<Rejection> check_seeds_in_turn(int seeds) {
    result_.strict = problem_.output().dtype == DType::f32;
    if (!result_.strict) note_badge("strict asks for an FP32 output");
    for (int i = 0; i < seeds; ++i) {
      const std::uint64_t seed =
          options_.seed ? *options_.seed + static_cast<std::uint64_t>(i) : sampler_->fresh_seed();
      result_.seeds.push_back(seed);
      sampler_->run(*runnable_, seed);
      std::optional<ErrorStats> stats;
      const Clock::time_point start = Clock::now();
      if (auto rejection = checker_->judge(seed, nullptr, &stats)) {
        result_.errors = stats;
        return rejection;
      }
      judgement_ = std::min(judgement_, Clock::now() - start);
      if (!result_.errors || stats->worst_tolerance_ratio > result_.errors->worst_tolerance_ratio) {
        result_.errors = stats;
      }
      compare_with_libraries(seed, *stats, i == 0);
    }
    lap("checks");
    return std::nullopt;
  }

  /// The references' own errors on the same inputs: all of them on the first seed, the headline
  /// wherever `strict` depends on it.
  void compare_with_libraries(std::uint64_t seed, const ErrorStats& candidate, bool first_seed) {
    const bool strict_by_itself = candidate.worst_strict_ratio <= 1.0;
    bool strict_by_library = false;
    for (std::size_t i = 0; i < references_.size(); ++i) {
      const bool headline = static_cast<int>(i) == headline_index();
      const bool needed = headline && result_.strict && !strict_by_itself;
      if (!references_[i].runnable || !(first_seed || needed)) continue;
      sampler_->run(*references_[i].runnable, seed);
      const ErrorStats library = checker_->measure_errors();
      if (first_seed) reference_errors_[references_[i].id] = library;
      if (headline) {
        strict_by_library = candidate.max_abs <= strict_share_of_library_error * library.max_abs &&
                            candidate.rms <= strict_share_of_library_error * library.rms;
      }
    }
    if (result_.strict && !strict_by_itself && !strict_by_library) {
      result_.strict = false;
      note_badge(
          "strict: an element misses 1e-4 + 1e-4·|truth|, and the error is more than twice "
          "the FP32 library's");
    }
  }

  /// Repeated runs on the same inputs. The last is made by code without a memory, for which no copy
  /// of an earlier result can pass for a repetition.
  std::optional<Rejection> check_determinism() {
    const std::uint64_t seed = sampler_->fresh_seed();
    std::set<std::uint64_t> digests;
    for (int i = 0; i < determinism_runs; ++i) {
      if (i == determinism_runs - 1) {
        if (auto rejection = load_module()) return rejection;
      }
      sampler_->run(*runnable_, seed);
      digests.insert(tools_->digest(buffers_->output(), *stream_));
      if (auto rejection = checker_->judge(seed, nullptr, nullptr)) return rejection;
    }
    result_.deterministic = digests.size() == 1;
    if (!result_.deterministic) note_badge("deterministic: repeated runs differ");
    lap("determinism");
    return std::nullopt;
  }

  /// Wrong values cost the badge; writing where nothing is to be written costs more.
  std::optional<Rejection> check_stress_inputs() {
    if (!options_.stress) {
      note_badge("robust: not tried");
      return std::nullopt;
    }
    result_.robust = true;
    for (const StressCase& stress : problem_.stress_cases) {
      const std::uint64_t seed = sampler_->fresh_seed();
      sampler_->run(*runnable_, seed, &stress);
      if (auto rejection = checker_->judge(seed, &stress, nullptr)) {
        if (rejection->status != Status::wrong_result) {
          rejection->message += " (on the stress inputs " + stress.name + ")";
          return rejection;
        }
        result_.robust = false;
        note_badge("robust: " + stress.name + ": " + rejection->message);
        break;
      }
    }
    lap("stress");
    return std::nullopt;
  }

  /// Which of so many timed samples of the candidate are judged.
  std::set<int> unannounced_checks(int samples) {
    const std::int64_t affordable = timed_checks_budget / std::max(judgement_, Clock::duration(1));
    const auto count = static_cast<std::size_t>(
        std::min<std::int64_t>(samples, std::max<std::int64_t>(fewest_timed_checks, affordable)));
    std::set<int> chosen;
    while (chosen.size() < count) {
      chosen.insert(static_cast<int>(sampler_->fresh_seed() % static_cast<std::uint64_t>(samples)));
    }
    return chosen;
  }

  /// One timed sample of the candidate; the kernel cannot tell whether it will be `judged`.
  std::int64_t time_candidate(bool judged, std::optional<Rejection>& rejection) {
    const std::int64_t elapsed = sampler_->timed_run(*runnable_);
    if (judged) rejection = checker_->judge(sampler_->last_seed(), nullptr, nullptr);
    if (rejection) rejection->message += " (in a timed run)";
    return elapsed;
  }

  std::optional<Rejection> time_samples() {
    const std::string candidate_name = "candidate";
    const std::string repeated_headline = "headline again";
    const std::set<int> checked = unannounced_checks(options_.samples);
    std::optional<Rejection> rejection;
    int sample = 0;

    std::vector<TimedSubject> subjects;
    subjects.push_back({candidate_name, [&] {
                          if (rejection) return std::int64_t{0};
                          return time_candidate(checked.contains(sample++), rejection);
                        }});
    for (const PreparedReference& reference : references_) {
      if (!reference.runnable) continue;
      subjects.push_back({reference.id, [&] { return sampler_->timed_run(*reference.runnable); }});
    }
    const int headline = headline_index();
    if (headline >= 0) {
      subjects.push_back({repeated_headline, [&] {
                            return sampler_->timed_run(
                                *references_[static_cast<std::size_t>(headline)].runnable);
                          }});
    }

    auto samples = measure_interleaved(subjects, options_.samples);
    if (rejection) return rejection;
    result_.timing = summarise(std::move(samples[candidate_name]));
    for (const PreparedReference& reference : references_) {
      result_.references.push_back(reference_result(reference, samples));
    }
    if (headline >= 0) note_noise(samples[repeated_headline]);
    lap("timing");
    return std::nullopt;
  }

  ReferenceResult reference_result(const PreparedReference& reference,
                                   std::map<std::string, std::vector<std::int64_t>>& samples) {
    ReferenceResult result;
    result.id = reference.id;
    result.unavailable = reference.unavailable;
    if (!reference.runnable) return result;
    note_reference(reference, result);
    result.timing = summarise(samples.at(reference.id));
    result.percent_of_reference =
        percent_of_reference(result.timing.samples_ns, result_.timing->samples_ns);
    return result;
  }

  /// What is known of a reference but its time.
  void note_reference(const PreparedReference& reference, ReferenceResult& result) {
    if (!reference.runnable) return;
    result.details = reference.runnable->details();
    if (auto found = reference_errors_.find(reference.id); found != reference_errors_.end()) {
      result.errors = found->second;
    }
  }

  /// The headline against itself: what a ratio of 100% looks like on this machine.
  void note_noise(const std::vector<std::int64_t>& repeated) {
    const ReferenceResult* headline = result_.headline();
    const Percent noise = percent_of_reference(headline->timing.samples_ns, repeated);
    const double half_width = std::max(noise.high - 100.0, 100.0 - noise.low);
    constexpr double ppm_per_percent = 1e4;
    result_.reference_noise_ppm = static_cast<std::int64_t>(half_width * ppm_per_percent);
  }

  /// Alternating blocks: some samples of the other process, some of the candidate.
  std::optional<Rejection> time_external_references() {
    const int block = std::max(1, options_.samples / external_blocks);
    int descriptor = first_inherited_descriptor;
    for (const std::string& id : options_.external_references) {
      ReferenceResult result;
      result.id = id;
      std::vector<std::int64_t> external_ns;
      std::vector<std::int64_t> candidate_ns;
      const std::set<int> checked = unannounced_checks(external_blocks * block);
      Result<std::unique_ptr<ExternalReference>> external =
          source_.make_external(id, problem_, {descriptor, descriptor + 1});
      descriptor += 2;
      if (!external) result.unavailable = external.error().message;
      for (int i = 0; external && i < external_blocks; ++i) {
        Result<std::vector<std::int64_t>> times =
            (*external)->time_block(block, sampler_->fresh_seed());
        if (!times) {
          result.unavailable = times.error().message;
          break;
        }
        external_ns.insert(external_ns.end(), times->begin(), times->end());
        for (int k = 0; k < block; ++k) {
          std::optional<Rejection> rejection;
          candidate_ns.push_back(time_candidate(checked.contains(i * block + k), rejection));
          if (rejection) return rejection;
        }
      }
      if (candidate_ns.empty()) {
        result_.references.push_back(std::move(result));
        continue;
      }
      if (result.unavailable.empty()) {
        result.details = (*external)->details();
        result.percent_of_reference = percent_of_reference(external_ns, candidate_ns);
        result.timing = summarise(std::move(external_ns));
      }
      result_.references.push_back(std::move(result));
    }
    if (!options_.external_references.empty()) lap("external");
    return std::nullopt;
  }

  /// The first reference that could be made.
  int headline_index() const {
    for (std::size_t i = 0; i < references_.size(); ++i) {
      if (references_[i].runnable) return static_cast<int>(i);
    }
    return -1;
  }

  void note_badge(const std::string& reason) {
    result_.badge_notes += (result_.badge_notes.empty() ? "" : "; ") + reason;
  }

  void lap(const std::string& phase) {
    const Clock::time_point now = Clock::now();
    result_.split_ns.emplace_back(
        phase, std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_lap_).count());
    last_lap_ = now;
  }

  const Candidate& candidate_;
  const Problem& problem_;
  const EvaluateOptions& options_;
  const ReferenceSource& source_;
  const std::function<Result<CompileOutcome>()>& compiled_;
  EvaluationReport& report_;
  Evaluation& result_;
  Clock::time_point last_lap_ = Clock::now();

  std::optional<Device> device_;
  std::optional<Stream> stream_;
  std::optional<GpuMonitor> monitor_;
  std::optional<DeviceTools> tools_;
  std::optional<ProblemBuffers> buffers_;
  std::optional<Sampler> sampler_;
  std::optional<Checker> checker_;
  std::vector<PreparedReference> references_;
  std::map<std::string, ErrorStats> reference_errors_;
  CompiledProgram candidate_code_;
  std::unique_ptr<Runnable> runnable_;
  Clock::duration judgement_ = Clock::duration::max();  ///< how long one takes
};

}  // namespace

EvaluationReport evaluate_here(const Candidate& candidate, const EvaluateOptions& options,
                               const ReferenceSource& references,
                               const std::function<Result<CompileOutcome>()>& compiled,
                               const std::function<void()>& started) {
  EvaluationReport report;
  report.evaluation.problem = candidate.problem;
  report.evaluation.kernel = candidate.name;
  report.evaluation.sha256 = candidate_sha256(candidate);
  const Problem* problem = find_problem(candidate.problem);
  bool running = false;
  try {
    EvaluationRun(candidate, *problem, options, references, compiled, report).run([&] {
      running = true;
      started();
    });
  } catch (const SetupFailure& failure) {
    report.failure = failure.what();
  } catch (const CudaError& error) {
    if (running) {
      report.evaluation.status =
          is_refused_launch(error.code()) ? Status::launch_failed : Status::crashed;
      report.evaluation.message = error.what();
    } else {
      report.failure = error.what();
    }
  }
  return report;
}

}  // namespace rekernel
