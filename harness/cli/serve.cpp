#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iostream>
#include <thread>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/evaluation/launcher.h"
#include "harness/jobs/slurm_launcher.h"
#include "harness/process/isolate.h"
#include "harness/service/launched_judge.h"
#include "harness/service/made_up_judge.h"
#include "harness/service/problem_json.h"
#include "harness/service/routes.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"

extern char** environ;

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using namespace service;

namespace {

constexpr unsigned cores_of_a_gpu = 2;
constexpr std::int64_t most_cores = 1024;

fs::path default_store() {
  const std::string state = environment("XDG_STATE_HOME");
  const fs::path folder =
      state.empty() ? fs::path(environment("HOME")) / ".local/state" : fs::path(state);
  return folder / "rekernel" / "service";
}

po::options_description serve_options() {
  po::options_description options;
  const auto text = [] { return po::value<std::string>(); };
  const auto number = [](std::int64_t value) {
    return po::value<std::int64_t>()->default_value(value);
  };
  options.add_options()("listen", text()->default_value("127.0.0.1:8420"),
                        "ADDRESS:PORT (port 0: any free one) or unix:PATH")(
      "store", text()->default_value(default_store().string()),
      "folder for evaluations and answers; one service at a time")(
      "tokens", text(),
      "file with a line for each client: NAME sha256:DIGITS [weight=2] [queued=1000]")(
      "new-token", text(), "append a client of this name to --tokens, print its token, and end")(
      "cores", number(0), "compilations at once; 0: all cores but two for each GPU")(
      "target", text(), "compile for this target (sm_90a) where no GPU says it")(
      "queue", number(200'000), "evaluations that may wait")(
      "client-queue", number(50'000), "of one client, unless --tokens says otherwise")(
      "connections", number(4096), "open at once")("body-mib", number(8), "largest request body")(
      "keep", number(1'000'000), "answered evaluations that are remembered")(
      "tries", number(3), "failures of the machine before an evaluation is given up")(
      "grace", number(30), "seconds that what runs may take to end after SIGTERM")(
      "sign", text(), "SSH key that signs verdicts")("launcher", text()->default_value("local"),
                                                     "local, or slurm: a job for each evaluation")(
      "partition", text(), "slurm: partition")("account", text(), "slurm: account")(
      "constraint", text(), "slurm: features that nodes must have")(
      "time", text(), "slurm: longest time of a job, in its format (15)")(
      "slurm-flag", po::value<std::vector<std::string>>()->composing(),
      "slurm: one more option of sbatch; several")("jobs", number(32),
                                                   "slurm: jobs in the queue at once")(
      "jobs-folder", text(), "slurm: folder that this machine and the nodes share")(
      "made-up-judge", po::value<std::int64_t>(),
      "for tests: verdicts that are made up after so many milliseconds, and say so")(
      "made-up-devices", number(1), "for tests: how many devices to make up")(
      "made-up-failures", po::value<double>()->default_value(0),
      "for tests: share of judgings that fail");
  add_gpu_options(options);
  return options;
}

/// A judge, and what it can do at once.
struct ChosenJudge {
  std::shared_ptr<JudgeBackend> judge;
  unsigned cores = 1;
};

unsigned cores_for(const ParsedArguments& parsed, std::size_t local_gpus) {
  const std::int64_t asked = parsed.get<std::int64_t>("cores");
  if (asked > 0) return static_cast<unsigned>(asked);
  const std::size_t all = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max<std::size_t>(
      1, all > cores_of_a_gpu * local_gpus ? all - cores_of_a_gpu * local_gpus : 1));
}

Result<ChosenJudge> judge_by(const ParsedArguments& parsed, LaunchedJudge::Options options,
                             std::size_t local_gpus) {
  options.toolchain = toolchain_text();
  if (parsed.has("sign")) options.signing_key = parsed.get<std::string>("sign");
  auto judge = LaunchedJudge::make(std::move(options));
  if (!judge) return judge.error();
  return ChosenJudge{std::move(*judge), cores_for(parsed, local_gpus)};
}

Result<ChosenJudge> local_judge(const ParsedArguments& parsed, const Log& log) {
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
  options.launcher = std::make_shared<LocalLauncher>(
      nullptr,
      [log](const std::string& holder) {
        log("gpu_waits", {{"message", holder}});
      },
      patience);
  for (const VisibleGpu& gpu : *chosen) options.places.push_back(gpu.ordinal);
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

Result<ChosenJudge> slurm_judge(const ParsedArguments& parsed, const Log& log) {
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

Result<ChosenJudge> chosen_judge(const ParsedArguments& parsed, const Log& log) {
  if (parsed.has("made-up-judge")) {
    MadeUpJudge::Options options;
    options.devices = static_cast<unsigned>(parsed.get<std::int64_t>("made-up-devices"));
    options.judge_time = std::chrono::milliseconds(parsed.get<std::int64_t>("made-up-judge"));
    options.failure_share = parsed.get<double>("made-up-failures");
    return ChosenJudge{std::make_shared<MadeUpJudge>(options), cores_for(parsed, 0)};
  }
  return parsed.get<std::string>("launcher") == "slurm" ? slurm_judge(parsed, log)
                                                        : local_judge(parsed, log);
}

Result<Ok> check_numbers(const ParsedArguments& parsed) {
  const auto check = [&](const char* name, std::int64_t least, std::int64_t most) -> Result<Ok> {
    if (!parsed.has(name)) return Ok{};
    const std::int64_t value = parsed.get<std::int64_t>(name);
    if (value >= least && value <= most) return Ok{};
    return Error{std::string("--") + name + ": expected " + std::to_string(least) + " to " +
                 std::to_string(most)};
  };
  constexpr std::int64_t many = 100'000'000;
  const std::vector<std::tuple<const char*, std::int64_t, std::int64_t>> ranges = {
      {"cores", 0, most_cores},  {"queue", 1, many},
      {"client-queue", 1, many}, {"connections", 1, 100'000},
      {"body-mib", 1, 1024},     {"keep", 0, many},
      {"tries", 1, 100},         {"grace", 0, 3600},
      {"jobs", 1, most_cores},   {"made-up-judge", 0, 60'000},
      {"made-up-devices", 0, 64}};
  for (const auto& [name, least, most] : ranges) {
    if (Result<Ok> good = check(name, least, most); !good) return good;
  }
  const std::string& launcher = parsed.get<std::string>("launcher");
  if (launcher != "local" && launcher != "slurm") {
    return Error{"--launcher " + one_line(launcher, 64) + ": expected local or slurm"};
  }
  if (parsed.has("target") && !capability_of(parsed.get<std::string>("target"))) {
    return Error{"--target: expected a target like sm_90a"};
  }
  return Ok{};
}

int make_token(const ParsedArguments& parsed) {
  if (!parsed.has("tokens")) return bad_input({"--new-token: expected --tokens FILE with it"});
  const std::string& name = parsed.get<std::string>("new-token");
  if (!is_identifier(name)) return bad_input({"--new-token: expected letters, digits and _"});
  const fs::path file = parsed.get<std::string>("tokens");
  std::string text;
  if (fs::exists(file)) {
    const Result<std::string> present = read_file(file, 1u << 20);
    if (!present) return bad_input(present.error());
    text = *present;
    if (!text.empty() && text.back() != '\n') text += "\n";
  }
  const NewToken token = new_token(name);
  text += token.line;
  if (const Result<Clients> good = Clients::parse(text, file.string()); !good)
    return bad_input(good.error());
  if (const Result<Ok> written = write_file_atomically(file, text); !written)
    return bad_input(written.error());
  std::cout << token.token << "\n";
  return exit_good;
}

/// As many descriptors as connections and children need, as far as the system grants them.
void raise_descriptor_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int serve_command(const Arguments& arguments) {
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel serve [options]",
                      "rekernel serve --listen 127.0.0.1:8420", serve_options());
  if (parsed.exit_status) return *parsed.exit_status;
  if (const Result<Ok> good = check_numbers(parsed); !good) return bad_input(good.error());
  if (parsed.has("new-token")) return make_token(parsed);
  const Result<ListenAddress> address = parse_listen_address(parsed.get<std::string>("listen"));
  if (!address) return bad_input({"--listen " + address.error().message});
  Routes::Options route_options;
  route_options.listens_on_unix_socket = !address->unix_path.empty();
  if (parsed.has("tokens")) {
    Result<Clients> clients = Clients::load(parsed.get<std::string>("tokens"));
    if (!clients) return bad_input(clients.error());
    route_options.clients = std::move(*clients);
  } else if (!address->is_loopback()) {
    return bad_input({"--listen " + parsed.get<std::string>("listen") +
                      ": expected --tokens with it, since others can reach it"});
  }
  raise_descriptor_limit();
  const Log log = log_to_standard_error();
  Result<Store> store = Store::open(parsed.get<std::string>("store"));
  if (!store) return bad_input({"--store " + store.error().message});
  Result<ChosenJudge> chosen = chosen_judge(parsed, log);
  if (!chosen) return bad_input(chosen.error());
  problems_json();  // read before the first client waits for it

  Service::Options options;
  options.limits.cores = chosen->cores;
  options.limits.devices = chosen->judge->devices();
  options.limits.most_queued = static_cast<std::size_t>(parsed.get<std::int64_t>("queue"));
  options.limits.most_queued_of_client =
      static_cast<std::size_t>(parsed.get<std::int64_t>("client-queue"));
  options.limits.tries = static_cast<int>(parsed.get<std::int64_t>("tries"));
  options.keep = parsed.get<std::int64_t>("keep");
  options.boot = boot_id();
  HttpLimits limits;
  limits.body_bytes = static_cast<std::uint64_t>(parsed.get<std::int64_t>("body-mib")) << 20;
  limits.connections = static_cast<std::size_t>(parsed.get<std::int64_t>("connections"));

  AsioLoop loop;
  auto service = std::make_unique<Service>(options, std::move(*store), chosen->judge, loop, log);
  Routes routes(*service, loop, std::move(route_options));
  auto server =
      HttpServer::listen(loop, parsed.get<std::string>("listen"), routes.handlers(), limits);
  if (!server) return bad_input({"--listen " + server.error().message});
  // Whoever started it learns the port from this line.
  std::cout << "listening on " << (*server)->address() << std::endl;
  log("started", {{"address", (*server)->address()},
                  {"devices", options.limits.devices},
                  {"no_device", chosen->judge->no_device()},
                  {"cores", options.limits.cores}});
  const std::chrono::seconds grace(parsed.get<std::int64_t>("grace"));
  bool nothing_runs = false;
  loop.on_end_signal([&](int) {
    service->stop(grace, [&](bool ended) {
      nothing_runs = ended;
      loop.stop();
    });
  });
  loop.run();
  (*server)->stop_accepting();
  log("stopped", {{"nothing_runs", nothing_runs}});
  if (!nothing_runs) {
    // What still runs would be waited for. It stays in the store and begins anew, and the children
    // die with this process.
    std::cout.flush();
    ::_exit(exit_good);
  }
  service.reset();
  return exit_good;
}

}  // namespace rekernel
