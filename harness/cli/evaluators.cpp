#include "harness/cli/evaluators.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "harness/compile/compile.h"
#include "harness/evaluation/launcher.h"
#include "harness/measuring/references.h"
#include "harness/terminal/arguments.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// A core or two for every GPU: its evaluation issues launches and reads clocks meanwhile.
constexpr std::size_t cores_of_a_gpu = 2;

/// How long others may hold a GPU before its candidates go to another one, if there is one.
constexpr std::chrono::seconds patience{60};

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

void add_device_options(po::options_description& options) {
  add_device_option(options);
  options.add_options()("gpus", text_value("LIST"), "several GPUs, of one kind: all, or 0,2");
}

Result<std::vector<int>> chosen_devices(const ParsedArguments& parsed) {
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) return visible.error();
  if (parsed.has("gpus") && parsed.given("device")) {
    return Error{"--device: expected it or --gpus, not both"};
  }
  const std::string names = parsed.has("gpus") ? parsed.get<std::string>("gpus")
                                               : std::to_string(parsed.get<int>("device"));
  const auto chosen = choose_gpus(names, *visible, std::nullopt);
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
                                     const std::string& target,
                                     std::function<void(const std::string&)> say) {
  PoolEvaluatorOptions options = compiling_evaluator(target, cores_of_a_gpu * gpus.size(), say);
  std::optional<std::chrono::seconds> longest_wait;
  if (gpus.size() > 1) longest_wait = patience;
  const auto launcher = std::make_shared<LocalLauncher>(nullptr, std::move(say), longest_wait);
  std::vector<int> ordinals;
  for (const VisibleGpu& gpu : gpus) ordinals.push_back(gpu.ordinal);
  options.expect_candidates = [launcher, ordinals] {
    for (const int ordinal : ordinals) launcher->prepare(ordinal);
  };
  options.workers = [ordinals, references, launcher]() -> Result<std::vector<PoolWorker>> {
    if (ordinals.empty()) {
      const auto visible = visible_gpus();
      return Error{visible ? "none was chosen" : visible.error().message};
    }
    EvaluateOptions evaluate;
    evaluate.references = references;
    return gpu_workers(ordinals, evaluate,
                       [launcher](const Candidate& candidate, const EvaluateOptions& own) {
                         return launcher->evaluate(candidate, own);
                       });
  };
  return options;
}

PoolEvaluatorOptions compiling_evaluator(const std::string& target, std::size_t reserved,
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
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  options.compilations = static_cast<unsigned>(cores > reserved ? cores - reserved : 1);
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
