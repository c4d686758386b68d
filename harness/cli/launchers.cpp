#include "harness/cli/launchers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/evaluators.h"
#include "harness/evaluation/launcher.h"
#include "harness/jobs/command_launcher.h"
#include "harness/jobs/slurm_launcher.h"
#include "harness/measuring/references.h"
#include "harness/process/isolate.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/interruption.h"
#include "replay/trajectory/inspection.h"

extern char** environ;

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr std::array slurm_options = {"partition", "account", "constraint", "slurm-flag", "probe"};
constexpr std::array job_options = {"jobs", "jobs-folder", "job-program", "job-tries", "time"};
constexpr std::int64_t max_jobs = 1024;

std::string text_of(const ParsedArguments& parsed, const char* name) {
  return parsed.has(name) ? parsed.get<std::string>(name) : std::string();
}

/// Our environment, less what the models' endpoints are paid with.
std::vector<std::string> job_environment(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> secrets, names = {"OPENAI_API_KEY="};
  for (const Endpoint& endpoint : endpoints) {
    secrets.push_back(endpoint.key);
    names.push_back(endpoint.record.key_variable + "=");
    for (const HeaderLine& line : endpoint.headers) {
      if (line.secret) secrets.push_back(line.value);
    }
  }
  std::vector<std::string> kept;
  for (char** at = environ; *at; ++at) {
    const std::string variable = *at;
    const bool secret = std::any_of(secrets.begin(), secrets.end(), [&](const std::string& one) {
      return !one.empty() && variable.find(one) != std::string::npos;
    });
    const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return variable.starts_with(name);
    });
    // A job that submits jobs: its own place in its array is none of theirs.
    if (!secret && !named && !variable.starts_with("SLURM_ARRAY_")) kept.push_back(variable);
  }
  return kept;
}

JobOptions options_of_jobs(const ParsedArguments& parsed, const ChosenSearch& chosen,
                           const std::function<void(const std::string&)>& say) {
  JobOptions options;
  options.program = parsed.has("job-program") ? text_of(parsed, "job-program") : own_executable();
  options.target = chosen.header.device.target;
  options.mixed_gpus = chosen.header.settings.mixed_gpus;
  options.tries = static_cast<int>(parsed.get<std::int64_t>("job-tries"));
  options.environment = job_environment(chosen.endpoints);
  options.say = say;
  return options;
}

std::optional<std::int64_t> minutes_in(const std::string& text) {
  std::int64_t minutes = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), minutes);
  constexpr std::int64_t month = 31 * 24 * 60;
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return minutes > 0 && minutes <= month ? std::optional(minutes) : std::nullopt;
}

/// What both kinds of launchers have in common.
struct Launched {
  std::shared_ptr<EvaluationLauncher> launcher;
  std::function<void()> cancel;
  std::function<std::optional<std::string>()> trouble;
  std::function<bool()> has_left;                                       ///< at the deadline
  std::function<Result<Ok>()> check = [] { return Result<Ok>(Ok{}); };  ///< may take its time
};

Result<Launched> launch_on_slurm(const ParsedArguments& parsed, const JobFolder& folder,
                                 JobOptions options) {
  SlurmJobOptions slurm;
  slurm.partition = text_of(parsed, "partition");
  slurm.account = text_of(parsed, "account");
  slurm.constraint = text_of(parsed, "constraint");
  if (parsed.has("time")) slurm.time = text_of(parsed, "time");
  if (parsed.has("slurm-flag")) slurm.flags = parsed.get<std::vector<std::string>>("slurm-flag");
  auto launcher = SlurmLauncher::open(folder, std::move(slurm), std::move(options), {});
  if (!launcher) return launcher.error();
  const std::shared_ptr<SlurmLauncher> shared = std::move(*launcher);
  const std::chrono::seconds patience(parsed.get<std::int64_t>("probe"));
  return Launched{shared, [shared] { shared->cancel(); }, [shared] { return shared->trouble(); },
                  [shared] { return shared->has_left(); },
                  [shared, patience]() -> Result<Ok> {
                    if (patience.count() == 0) return Ok{};
                    return shared->check_nodes(patience);
                  }};
}

Result<Launched> launch_by_command(const ParsedArguments& parsed, const JobFolder& folder,
                                   JobOptions options) {
  CommandTimes times;
  if (parsed.has("time"))
    times.deadline = std::chrono::minutes(*minutes_in(text_of(parsed, "time")));
  auto launcher =
      CommandLauncher::open(folder, text_of(parsed, "prefix"), std::move(options), times);
  if (!launcher) return launcher.error();
  const std::shared_ptr<CommandLauncher> shared = std::move(*launcher);
  return Launched{shared, [shared] { shared->cancel(); },
                  [shared]() -> std::optional<std::string> {
                    if (shared->is_over()) return left_at_deadline;
                    if (!shared->is_cancelled()) return std::nullopt;
                    return "interrupted: its jobs are ended";
                  },
                  [shared] { return shared->is_over(); }};
}

Result<JobFolder> folder_for_jobs(const ParsedArguments& parsed, fs::path trajectory, bool fresh) {
  const fs::path path = parsed.has("jobs-folder") ? fs::path(text_of(parsed, "jobs-folder"))
                                                  : trajectory.replace_extension(".jobs");
  Result<JobFolder> folder = JobFolder::open(path);
  if (!folder || !fresh) return folder;
  if (folder->is_used()) {
    return Error{folder->path().string() +
                 ": expected no jobs of another search there: remove the folder, or give another "
                 "with --jobs-folder"};
  }
  folder->forget_gpu();
  return folder;
}

/// What jobs on other machines cannot do.
Result<Ok> check_needs(const Header& header, const std::string& launcher) {
  const std::vector<std::string> libraries = library_reference_ids(header.problem);
  for (const std::string& id : header.settings.references) {
    if (std::find(libraries.begin(), libraries.end(), id) != libraries.end()) continue;
    return Error{"--launcher " + launcher + ": expected local, since " + id +
                 " is timed beside candidates, which jobs cannot do"};
  }
  if (header.settings.profiles) {
    return Error{"--launcher " + launcher +
                 ": expected local, since the prompts show profiles, which jobs do not make"};
  }
  return Ok{};
}

}  // namespace

void add_launcher_options(po::options_description& options) {
  using Number = std::int64_t;
  options.add_options()("launcher", one_of({"local", "slurm", "command"})->default_value("local"),
                        "who evaluates; local: this machine's GPUs")(
      "prefix", text_value("WORDS"),
      "command: what goes before the program, as a shell reads it: 'ssh gpu7'")(
      "partition", text_value("NAME"), "slurm: partition")(
      "account", text_value("NAME"), "slurm: account")("constraint", text_value("FEATURES"),
                                                       "slurm: features that nodes must have")(
      "slurm-flag", list_value("FLAG"),
      "slurm: one more option of sbatch, as --slurm-flag=--mem=32G")(
      "probe", whole_number<Number>(0, 86400, "seconds")->default_value(60),
      "slurm: time to wait at the start for a job that looks whether nodes see the folder; 0: "
      "none")(
      "time", text_value("TIME"),
      "longest time of a job: slurm's format (default 15), minutes for command (default 60)")(
      "jobs", whole_number<Number>(1, max_jobs)->default_value(32), "jobs in the queue at once")(
      "jobs-folder", text_value("DIR", {Names::folder}),
      "folder that this machine and the nodes share; NAME.jobs by default")(
      "job-program", text_value("FILE", {Names::file}),
      "this program's path on the nodes, where it is another")(
      "job-tries", whole_number<Number>(1, 100)->default_value(3),
      "jobs for a candidate that end without a result before it is given up");
}

Result<Ok> check_launcher_options(const ParsedArguments& parsed) {
  const std::string& launcher = parsed.get<std::string>("launcher");
  const auto refuse = [&](const char* option, const char* with) {
    return Error{std::string("--") + option + ": expected --launcher " + with + " with it"};
  };
  for (const char* option : slurm_options) {
    if (parsed.given(option) && launcher != "slurm") return refuse(option, "slurm");
  }
  for (const char* option : job_options) {
    if (parsed.given(option) && launcher == "local") return refuse(option, "slurm or command");
  }
  if (parsed.given("prefix") && launcher != "command") return refuse("prefix", "command");
  if (parsed.given("gpus") && launcher != "local") return refuse("gpus", "local");
  if (launcher == "command" && text_of(parsed, "prefix").empty()) {
    return Error{"--launcher command: expected --prefix, what goes before the program: 'ssh gpu7'"};
  }
  if (launcher == "command" && parsed.has("time") && !minutes_in(text_of(parsed, "time"))) {
    return Error{"--time: expected a number of minutes with --launcher command"};
  }
  return Ok{};
}

Result<LaunchedEvaluator> launched_evaluator(
    const ParsedArguments& parsed, const fs::path& trajectory, bool fresh,
    const ChosenSearch& chosen, std::optional<std::chrono::steady_clock::time_point> deadline,
    std::function<void(const std::string&)> say, std::function<void()> interrupted) {
  const Header& header = chosen.header;
  const std::string& kind = parsed.get<std::string>("launcher");
  LaunchedEvaluator result;
  const Result<std::string> timed = timed_on(trajectory);
  if (!timed) return timed.error();
  if (kind == "local") {
    const auto gpus = gpus_for(parsed, header, *timed);
    if (!gpus) return gpus.error();
    result.options = local_evaluator(*gpus, header.settings.references, header.problem,
                                     header.device.target, say);
    if (header.settings.profiles && !gpus->empty()) {
      result.options.profile = ncu_profiles(gpus->front());
    }
    result.interruption = std::make_shared<OnInterruption>(std::move(interrupted));
    return result;
  }
  if (Result<Ok> local = check_needs(header, kind); !local) return local.error();
  const Result<JobFolder> folder = folder_for_jobs(parsed, trajectory, fresh);
  if (!folder) return folder.error();
  if (!timed->empty()) {
    if (Result<Ok> kept = folder->expect_gpu(*timed); !kept) return kept.error();
  }
  JobOptions jobs = options_of_jobs(parsed, chosen, say);
  jobs.deadline = deadline;
  Result<Launched> launched = kind == "slurm" ? launch_on_slurm(parsed, *folder, std::move(jobs))
                                              : launch_by_command(parsed, *folder, std::move(jobs));
  Result<Ok> good = Ok{};
  if (launched) {
    result.interruption = std::make_shared<OnInterruption>(
        [cancel = launched->cancel, interrupted = std::move(interrupted)] {
          cancel();
          interrupted();
        });
    good = launched->check();
  } else {
    good = launched.error();
  }
  if (!good) {
    if (fresh && !parsed.has("jobs-folder")) fs::remove_all(folder->path());
    return good.error();
  }
  EvaluateOptions evaluate;
  evaluate.references = header.settings.references;
  result.options = compiling_evaluator(header.device.target, 0, std::move(say));
  result.options.pool.workers_differ = false;
  result.options.pool.trouble = [trouble = launched->trouble,
                                 has_left = launched->has_left]() -> std::optional<Interruption> {
    auto message = trouble();
    if (!message) return std::nullopt;
    const auto kind = has_left() ? Interruption::Kind::waiting : Interruption::Kind::failed;
    return Interruption{kind, std::move(*message)};
  };
  result.options.workers = [launcher = launched->launcher, evaluate,
                            count = parsed.get<std::int64_t>("jobs")] {
    std::vector<PoolWorker> workers;
    for (std::int64_t i = 0; i < count; ++i) {
      workers.push_back({"job " + std::to_string(i + 1), [launcher, evaluate](const auto& one) {
                           return launcher->evaluate(one, evaluate);
                         }});
    }
    return Result<std::vector<PoolWorker>>(std::move(workers));
  };
  result.options.settled = [folder = *folder, evaluate](const Candidate& candidate) {
    folder.remove_result(JobFolder::key_of(candidate, evaluate));
  };
  result.recorded = [folder = *folder] { folder.clear(); };
  return result;
}

int evaluate_job_command(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return bad_input({"evaluate-job: expected FOLDER KEY"});
  const Result<Ok> done = run_job(
      arguments[0], arguments[1], [](const Candidate& candidate, const EvaluateOptions& options) {
        EvaluationReport report = LocalLauncher().evaluate(candidate, options);
        report.toolchain = toolchain_text();
        return report;
      });
  return done ? exit_good : bad_input(done.error());
}

}  // namespace rekernel
