#include "harness/cli/evaluators.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "harness/compile/compile.h"
#include "harness/measuring/place.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/profile/profiler.h"
#include "harness/terminal/arguments.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// For every GPU: its evaluation issues launches and reads clocks meanwhile.
constexpr std::size_t cores_of_a_gpu = 2;

/// How long others may hold a GPU before its candidates go to another one, if there is one.
constexpr std::chrono::seconds patience{60};

/// They begin with the first candidate.
using EvaluationPlaces = std::map<int, std::shared_ptr<MeasuringPlace>>;

Result<Ok> begin(const EvaluationPlaces& places, const EvaluateOptions& evaluate,
                 const std::string& problem) {
  const bool externals = !evaluate.external_references.empty();
  if (externals && !pytorch_is_installed()) {
    return Error{evaluate.external_references.front() +
                 " is timed beside candidates, and python3 here cannot import torch"};
  }
  std::optional<WhoseText> pytorch;
  if (externals) pytorch = whose_text(is_strangers(*find_problem(problem)));
  for (const auto& [device, place] : places) {
    if (Result<Ok> begun = place->begin(pytorch); !begun) return begun;
  }
  return Ok{};
}

/// Those of libraries in the judge's own processes, those of PyTorch in theirs.
EvaluateOptions timed_beside(const std::vector<std::string>& references,
                             const std::string& problem) {
  const std::vector<std::string> libraries = library_reference_ids(problem);
  EvaluateOptions evaluate;
  for (const std::string& id : references) {
    const bool library = std::find(libraries.begin(), libraries.end(), id) != libraries.end();
    (library ? evaluate.references : evaluate.external_references).push_back(id);
  }
  leave_time_for_torch_compile(evaluate);
  return evaluate;
}

}  // namespace

void add_gpu_options(po::options_description& options) {
  options.add_options()("gpus", text_value("LIST")->default_value("all"),
                        "GPUs to evaluate on, one candidate at a time on each: all, or 0,2")(
      "mixed-gpus", po::bool_switch(),
      "take GPUs of different kinds; what counts is the share of the reference's time");
}

void add_device_option(po::options_description& options) {
  options.add_options()("device", po::value<int>()->value_name("N")->default_value(0),
                        "number of the GPU, as nvidia-smi counts");
}

Result<VisibleGpu> chosen_gpu(const ParsedArguments& parsed) {
  const Result<std::vector<VisibleGpu>> gpus = visible_gpus();
  if (!gpus) return gpus.error();
  const int device = parsed.get<int>("device");
  for (const VisibleGpu& gpu : *gpus) {
    if (gpu.ordinal == device) return gpu;
  }
  return Error{"--device " + std::to_string(device) + ": no such GPU; this machine has " +
               std::to_string(gpus->size())};
}

void add_device_options(po::options_description& options) {
  add_device_option(options);
  options.add_options()("gpus", text_value("LIST"), "several GPUs, of one kind: all, or 0,2");
}

Result<std::vector<VisibleGpu>> chosen_gpus(const ParsedArguments& parsed) {
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) return visible.error();
  if (parsed.has("gpus") && parsed.given("device")) {
    return Error{"--device: expected it or --gpus, not both"};
  }
  const std::string names = parsed.has("gpus") ? parsed.get<std::string>("gpus")
                                               : std::to_string(parsed.get<int>("device"));
  return choose_gpus(names, *visible, std::nullopt);
}

Result<std::vector<int>> chosen_devices(const ParsedArguments& parsed) {
  const Result<std::vector<VisibleGpu>> chosen = chosen_gpus(parsed);
  if (!chosen) return chosen.error();
  std::vector<int> devices;
  for (const VisibleGpu& gpu : *chosen) devices.push_back(gpu.ordinal);
  return devices;
}

Result<std::vector<VisibleGpu>> gpus_for(const ParsedArguments& parsed, const Header& header,
                                         const std::string& timed_on) {
  const std::string& target = header.device.target;
  // A search that has begun is asked no more.
  const bool mixed = header.settings.mixed_gpus;
  const auto asked_for = mixed || timed_on.empty() ? std::optional(mixed) : std::nullopt;
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) return std::vector<VisibleGpu>{};
  Result<std::vector<VisibleGpu>> chosen =
      choose_gpus(parsed.get<std::string>("gpus"), *visible, asked_for);
  if (!chosen) return chosen;
  for (const VisibleGpu& gpu : *chosen) {
    if (!mixed && !timed_on.empty() && gpu.name != timed_on) {
      return Error{to_string(gpu) + ": the search's candidates were timed on an " + timed_on +
                   ", and times of different GPUs cannot be compared: leave it out with --gpus"};
    }
    const std::string own = Compiler::target_for_device(gpu.major, gpu.minor);
    if (own == target) continue;
    return Error{to_string(gpu) + " runs " + own + "; the search writes code for " + target +
                 ": leave it out with --gpus"};
  }
  return chosen;
}

PoolEvaluatorOptions local_evaluator(const std::vector<VisibleGpu>& gpus,
                                     const std::vector<std::string>& references,
                                     const std::string& problem, const std::string& target,
                                     const std::function<void(const std::string&)>& say) {
  PoolEvaluatorOptions options = compiling_evaluator(target, gpus.size(), say);
  std::optional<std::chrono::seconds> longest_wait;
  if (gpus.size() > 1) longest_wait = patience;
  EvaluationPlaces places;
  std::vector<int> ordinals;
  for (const VisibleGpu& gpu : gpus) {
    ordinals.push_back(gpu.ordinal);
    places[gpu.ordinal] = std::make_shared<MeasuringPlace>(gpu.ordinal, say, longest_wait);
  }
  options.expect_candidates = [places] {
    for (const auto& [device, place] : places) place->expect_candidates();
  };
  const EvaluateOptions evaluate = timed_beside(references, problem);
  options.workers = [ordinals, places, evaluate, problem]() -> Result<std::vector<PoolWorker>> {
    if (places.empty()) {
      const auto visible = visible_gpus();
      return Error{visible ? "none was chosen" : visible.error().message};
    }
    if (Result<Ok> begun = begin(places, evaluate, problem); !begun) return begun.error();
    return gpu_workers(ordinals, evaluate,
                       [places](const Candidate& candidate, const EvaluateOptions& own) {
                         return places.at(own.device)->launcher().evaluate(candidate, own);
                       });
  };
  return options;
}

std::function<Result<ProfileRecord>(const Candidate&)> ncu_profiles(const VisibleGpu& gpu) {
  const auto profiler = std::make_shared<std::optional<NcuProfiler>>();
  return [gpu, profiler](const Candidate& candidate) -> Result<ProfileRecord> {
    if (!*profiler) {
      Result<NcuProfiler> found = NcuProfiler::find();
      if (!found) return found.error();
      *profiler = std::move(*found);
    }
    const Result<Profiling> profiling = (*profiler)->profile(candidate, gpu);
    if (!profiling) return profiling.error();
    ProfileRecord record{gpu.name, (*profiler)->version(), "", profiling->unavailable};
    if (profiling->profile) record.text = profile_text(*profiling->profile, max_profile_bytes);
    return record;
  };
}

unsigned compiling_cores(std::size_t gpus) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(cores > cores_of_a_gpu * gpus ? cores - cores_of_a_gpu * gpus : 1);
}

PoolEvaluatorOptions compiling_evaluator(const std::string& target, std::size_t gpus,
                                         std::function<void(const std::string&)> say) {
  PoolEvaluatorOptions options;
  options.target = target;
  options.toolchain = toolchain_text();
  options.pool.say = std::move(say);
  if (const Result<Compiler> compiler = Compiler::load()) {
    options.compile = [compiler = *compiler, target](const Candidate& candidate) {
      return precompile(compiler, candidate, target);
    };
  }
  options.compilations = compiling_cores(gpus);
  return options;
}

std::string toolchain_text() {
  std::string text;
  for (const auto& [component, version] : toolchain_versions()) {
    if (component == "PyTorch") continue;
    text += (text.empty() ? "" : ", ") + component + " " + version;
  }
  return text;
}

}  // namespace rekernel
