#include "harness/cli/serving_judge.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "harness/cli/evaluators.h"
#include "harness/evaluation/launcher.h"
#include "harness/jobs/slurm_launcher.h"
#include "harness/measuring/place.h"
#include "harness/measuring/references.h"
#include "harness/process/isolate.h"
#include "harness/profile/profiler.h"
#include "harness/service/launched_judge.h"
#include "harness/service/made_up_judge.h"

extern char** environ;

namespace rekernel::service {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

unsigned cores_for(const ParsedArguments& parsed, std::size_t local_gpus) {
  const std::int64_t asked = parsed.get<std::int64_t>("cores");
  if (asked > 0) return static_cast<unsigned>(asked);
  return compiling_cores(local_gpus);
}

Result<ServingJudge> judge_by(const ParsedArguments& parsed, LaunchedJudge::Options options,
                              std::size_t local_gpus) {
  options.toolchain = toolchain_text();
  if (parsed.has("sign")) options.signing_key = parsed.get<std::string>("sign");
  auto judge = LaunchedJudge::make(std::move(options));
  if (!judge) return judge.error();
  return ServingJudge{std::move(*judge), cores_for(parsed, local_gpus), 1};
}

Result<ServingJudge> local_judge(const ParsedArguments& parsed, const Log& log) {
  LaunchedJudge::Options options;
  if (parsed.has("target")) options.target = parsed.get<std::string>("target");
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) {
    options.no_place = visible.error().message;
    return judge_by(parsed, std::move(options), 0);
  }
  // One service's verdicts are of one kind of GPU: they are kept by its name.
  const auto chosen = choose_gpus(parsed.get<std::string>("gpus"), *visible, false);
  if (!chosen) return chosen.error();
  std::optional<std::chrono::seconds> patience;
  if (chosen->size() > 1) patience = std::chrono::seconds(60);
  const auto waits = [log](const std::string& holder) { log("gpu_waits", {{"message", holder}}); };
  options.launcher = std::make_shared<LocalLauncher>(nullptr, waits, patience);
  for (const VisibleGpu& gpu : *chosen) {
    options.places.push_back(gpu.ordinal);
    if (parsed.get<bool>("pytorch")) {
      const auto place = std::make_shared<MeasuringPlace>(gpu.ordinal, waits, patience);
      const auto launcher = [place]() -> Result<EvaluationLauncher*> {
        if (const Result<Ok> begun = place->begin(WhoseText::own); !begun) return begun.error();
        return &place->launcher();
      };
      // It imports PyTorch from now on.
      if (const auto begun = launcher(); !begun) return begun.error();
      options.with_pytorch.push_back(launcher);
    }
    if (parsed.get<bool>("profiles")) options.profilers.push_back(ncu_profiles(gpu));
  }
  options.device_name = chosen->front().name;
  options.target = Compiler::target_for_device(chosen->front().major, chosen->front().minor);
  return judge_by(parsed, std::move(options), chosen->size());
}

/// Ours, less what looks like a secret, and less our place in a job array.
std::vector<std::string> environment_of_jobs() {
  std::vector<std::string> kept;
  for (char** at = environ; *at; ++at) {
    const std::string variable = *at;
    const std::string name = variable.substr(0, variable.find('='));
    const bool secret =
        name.find("KEY") != std::string::npos || name.find("TOKEN") != std::string::npos ||
        name.find("SECRET") != std::string::npos || name.find("PASSWORD") != std::string::npos;
    if (!secret && !name.starts_with("SLURM_ARRAY_")) kept.push_back(variable);
  }
  return kept;
}

Result<ServingJudge> slurm_judge(const ParsedArguments& parsed, const Log& log) {
  if (!parsed.has("target"))
    return Error{"--launcher slurm: expected --target, what the nodes' GPUs run (sm_90a)"};
  const auto text = [&](const char* name) {
    return parsed.has(name) ? parsed.get<std::string>(name) : "";
  };
  const Result<JobFolder> folder = JobFolder::open(
      parsed.has("jobs-folder") ? fs::path(text("jobs-folder")) : fs::path(text("store")) / "jobs");
  if (!folder) return folder.error();
  SlurmJobOptions slurm;
  slurm.partition = text("partition");
  slurm.account = text("account");
  slurm.constraint = text("constraint");
  if (parsed.has("time")) slurm.time = text("time");
  if (parsed.has("slurm-flag")) slurm.flags = parsed.get<std::vector<std::string>>("slurm-flag");
  JobOptions jobs;
  jobs.program = own_executable();
  jobs.target = text("target");
  jobs.environment = environment_of_jobs();
  jobs.say = [log](const std::string& line) { log("slurm", {{"message", line}}); };
  auto launcher = SlurmLauncher::open(*folder, std::move(slurm), std::move(jobs), {});
  if (!launcher) return launcher.error();
  LaunchedJudge::Options options;
  options.launcher = std::move(*launcher);
  options.places.assign(static_cast<std::size_t>(parsed.get<std::int64_t>("jobs")), 0);
  options.target = text("target");
  options.is_local = false;
  options.settled = [folder = *folder](const Candidate& candidate,
                                       const EvaluateOptions& evaluate) {
    folder.remove_result(JobFolder::key_of(candidate, evaluate));
  };
  return judge_by(parsed, std::move(options), 0);
}

}  // namespace

void add_judge_options(Page& page) {
  constexpr std::int64_t most_cores = 1024;
  constexpr std::int64_t most_at_once = 64;
  const auto number = [](std::int64_t least, std::int64_t most, std::int64_t value) {
    return whole_number<std::int64_t>(least, most)->default_value(value);
  };
  page.group("Judging").add_options()("gpus", text_value("LIST")->default_value("all"),
                                      "GPUs to judge on: all, or 0,2")(
      "untimed-at-once", number(1, most_at_once, 6),
      "candidates of tier correct that share a GPU; a timed one has it for itself")(
      "cores", number(0, most_cores, 0), "compilations at once; 0: all cores but two for each GPU")(
      "target", text_value("TARGET"), "compile for this target (sm_90a) where no GPU says it")(
      "sign", text_value("FILE", {Names::file}), "SSH key that signs verdicts")(
      "pytorch", po::bool_switch(),
      "time PyTorch eager beside candidates for problems that no library solves")(
      "profiles", po::bool_switch(),
      "profile candidates for clients that ask; they run under Nsight Compute, without the "
      "sandbox")("launcher", one_of({"local", "slurm"})->default_value("local"),
                 "local, or slurm: a job for each evaluation");
  page.group("With --launcher slurm")
      .add_options()("partition", text_value("NAME"), "partition")(
          "account", text_value("NAME"), "account")("constraint", text_value("FEATURES"),
                                                    "features that nodes must have")(
          "time", text_value("TIME"), "longest time of a job, in Slurm's format (15)")(
          "slurm-flag", list_value("FLAG")->composing(), "one more option of sbatch; several")(
          "jobs", number(1, most_cores, 32), "jobs in the queue at once")(
          "jobs-folder", text_value("DIR", {Names::folder}),
          "folder that this machine and the nodes share");
  page.group("For tests")
      .add_options()("made-up-judge", whole_number<std::int64_t>(0, 60'000),
                     "verdicts that are made up after so many milliseconds, and say so")(
          "made-up-devices", number(0, 64, 1), "how many devices to make up")(
          "made-up-failures", po::value<double>()->value_name("SHARE")->default_value(0),
          "share of judgings that fail");
}

Result<Ok> check_judge_options(const ParsedArguments& parsed) {
  for (const char* option :
       {"partition", "account", "constraint", "time", "slurm-flag", "jobs", "jobs-folder"}) {
    if (parsed.given(option) && parsed.get<std::string>("launcher") != "slurm") {
      return Error{std::string("--") + option + ": expected --launcher slurm with it"};
    }
  }
  for (const char* option : {"untimed-at-once", "profiles", "pytorch"}) {
    if (parsed.given(option) && parsed.get<std::string>("launcher") != "local") {
      return Error{std::string("--") + option + ": expected --launcher local with it"};
    }
  }
  if (parsed.get<bool>("pytorch") && !pytorch_is_installed()) {
    return Error{"--pytorch: python3 here cannot import torch"};
  }
  if (parsed.get<bool>("profiles")) {
    if (const auto profiler = NcuProfiler::find(); !profiler) {
      return Error{"--profiles: " + profiler.error().message};
    }
  }
  return Ok{};
}

Result<ServingJudge> serving_judge(const ParsedArguments& parsed, const Log& log) {
  const auto at_once = static_cast<unsigned>(parsed.get<std::int64_t>("untimed-at-once"));
  if (parsed.has("made-up-judge")) {
    MadeUpJudge::Options options;
    options.devices = static_cast<unsigned>(parsed.get<std::int64_t>("made-up-devices"));
    options.judge_time = std::chrono::milliseconds(parsed.get<std::int64_t>("made-up-judge"));
    options.failure_share = parsed.get<double>("made-up-failures");
    return ServingJudge{std::make_shared<MadeUpJudge>(options), cores_for(parsed, 0), at_once};
  }
  const bool local = parsed.get<std::string>("launcher") == "local";
  Result<ServingJudge> chosen = local ? local_judge(parsed, log) : slurm_judge(parsed, log);
  if (chosen && local) chosen->untimed_at_once = at_once;
  return chosen;
}

}  // namespace rekernel::service
