// Launchers against a real Slurm, which the test starts, and against commands. The evaluation
// itself is made up (slurm_main.cpp), since no GPU is needed for what is tested here.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "harness/jobs/command_launcher.h"
#include "harness/jobs/slurm_launcher.h"
#include "harness/process/isolate.h"
#include "harness/process/tool.h"
#include "replay/evaluator/device_evaluator.h"
#include "replay/search/reply.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SlurmTimes short_times{milliseconds(100), milliseconds(400), seconds(3),
                                 milliseconds(300), seconds(2),        seconds(3)};

Candidate named(const std::string& name) {
  auto candidate = testing::candidate_from_text(
      testing::kernel_reply(name), {"softmax", "test", "r1.i1.b1", "an idea", "sm_90a"});
  if (!candidate) throw std::runtime_error(candidate.error().message);
  candidate->name = name;
  return std::move(*candidate);
}

/// A launcher on a folder, and what came out of it.
struct Jobs {
  explicit Jobs(const fs::path& where) : folder(where) {
    options.program = own_executable();
    options.target = "sm_90a";
    options.say = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      said += text + "\n";
    };
  }

  Result<std::unique_ptr<SlurmLauncher>> open() {
    Result<JobFolder> opened = JobFolder::open(folder);
    if (!opened) return opened.error();
    return SlurmLauncher::open(std::move(*opened), slurm, options, short_times);
  }

  /// Evaluates candidates of these names at the same time; their failures, or "".
  template <class Launcher>
  std::map<std::string, std::string> evaluate(Launcher& launcher,
                                              const std::vector<std::string>& names) {
    std::map<std::string, std::future<EvaluationReport>> reports;
    for (const std::string& name : names) {
      reports[name] = std::async(std::launch::async,
                                 [&launcher, name] { return launcher.evaluate(named(name), {}); });
    }
    std::map<std::string, std::string> failures;
    for (auto& [name, report] : reports) {
      const EvaluationReport got = report.get();
      EXPECT_EQ(got.evaluation.kernel, name);
      EXPECT_EQ(got.evaluation.message, got.failure.empty() ? "made up" : "") << name;
      failures[name] = got.failure;
    }
    return failures;
  }

  /// The nodes on which it was begun, in order.
  std::vector<std::string> begun(const std::string& name) const {
    std::vector<std::string> nodes;
    std::ifstream file(folder / ("begun." + name));
    for (std::string line; std::getline(file, line);) nodes.push_back(line);
    return nodes;
  }

  /// Until so many of these were begun.
  bool waits_for(const std::vector<std::string>& names, std::ptrdiff_t count = 1) const {
    for (int i = 0; i < 300; ++i) {
      const auto is_begun = [&](const std::string& name) { return !begun(name).empty(); };
      if (std::count_if(names.begin(), names.end(), is_begun) >= count) return true;
      std::this_thread::sleep_for(milliseconds(100));
    }
    return false;
  }

  bool said_that(const std::string& part) {
    const std::lock_guard lock(mutex);
    return said.find(part) != std::string::npos;
  }

  fs::path folder;
  SlurmJobOptions slurm;
  JobOptions options;
  std::mutex mutex;
  std::string said;
};

std::vector<std::string> several(const std::string& kind, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(kind + "_" + std::to_string(i));
  return names;
}

constexpr int slow_candidates = 5;

/// One cluster for all tests here.
class SlurmCluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Under /tmp, since a socket's path is short.
    home = std::make_unique<TemporaryFolder>("/tmp");
    const ToolOutcome started = cluster({"start"});
    running = started.good();
    skipped = started.exit_status == 77 ? started.output : "";
    ::setenv("SLURM_CONF", (*home / "slurm.conf").c_str(), 1);
    if (!running) return;
    // Slurm counts minutes: this one takes over a minute, beside the others.
    timed_out = std::make_unique<Jobs>(*home / "hangs");
    timed_out->slurm.time = "1";
    timed_out->slurm.partition = "apart";
    timed_out->options.tries = 2;
    timeout = std::async(std::launch::async, [] {
      auto launcher = timed_out->open();
      if (!launcher) return launcher.error().message;
      return timed_out->evaluate(**launcher, {"hangs_1"}).at("hangs_1");
    });
  }
  static void TearDownTestSuite() {
    if (timeout.valid()) timeout.wait();
    timed_out.reset();
    if (running) cluster({"stop"});
    home.reset();
  }
  void SetUp() override {
    if (!skipped.empty()) GTEST_SKIP() << skipped;
    ASSERT_TRUE(running);
  }

  static ToolOutcome cluster(std::vector<std::string> arguments) {
    ToolCommand command;
    command.arguments = {REKERNEL_SOURCE_DIR "/tests/replay/slurm_cluster.sh"};
    command.arguments.push_back(arguments.front());
    command.arguments.push_back(home->path().string());
    command.arguments.insert(command.arguments.end(), arguments.begin() + 1, arguments.end());
    command.deadline = seconds(60);
    return *run_tool(command);
  }
  static std::string slurm(std::vector<std::string> arguments) {
    ToolCommand command;
    command.arguments = std::move(arguments);
    command.deadline = seconds(20);
    return run_tool(command)->output;
  }

  /// Of all jobs in the queue but the one that is to time out, once nothing ends any more.
  static std::ptrdiff_t jobs_left() {
    std::string left;
    for (int i = 0; i < 50; ++i) {
      left = slurm({"squeue", "--noheader", "--partition=gpus,requeued,cancelled",
                    "--states=PENDING,RUNNING"});
      if (left.empty()) break;
      std::this_thread::sleep_for(milliseconds(100));
    }
    return std::count(left.begin(), left.end(), '\n');
  }

  /// A job of a higher partition takes the node from whoever has it, for a second.
  static void take_node(const std::string& node) {
    slurm({"sbatch", "--partition=urgent", "--nodelist=" + node, "--gres=gpu:1", "--chdir=/",
           "--output=/dev/null", "--wrap=sleep 1"});
  }

  static inline std::unique_ptr<TemporaryFolder> home;
  static inline bool running = false;
  static inline std::string skipped;
  static inline std::unique_ptr<Jobs> timed_out;
  static inline std::future<std::string> timeout;
};

TEST_F(SlurmCluster, EvaluatesCandidatesAsTasksOfArrays) {
  Jobs jobs(*home / "plain");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  const std::vector<std::string> names = several("plain", 9);
  for (const auto& [name, failure] : jobs.evaluate(**launcher, names)) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(jobs.begun(name).size(), 1u) << name;
  }
  // An array may have six tasks here.
  EXPECT_EQ(jobs.said_that("Slurm takes no"), false) << jobs.said;
  EXPECT_TRUE(fs::is_empty(jobs.folder / "batches"));
  EXPECT_TRUE(fs::is_empty(jobs.folder / "requests"));
  for (int i = 0; i < 50 && !fs::is_empty(jobs.folder / "logs"); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(fs::is_empty(jobs.folder / "logs"));
  EXPECT_EQ((*launcher)->evaluate(named("plain_9"), {}).toolchain.substr(0, 10), "made up on");
}

TEST_F(SlurmCluster, SubmitsAnewWhatLeavesNoWholeResult) {
  Jobs jobs(*home / "again");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  auto failures = jobs.evaluate(**launcher, {"silent_1", "torn_1", "never_1", "dies_1", "plain_1"});
  EXPECT_EQ(failures["silent_1"], "");
  EXPECT_EQ(failures["torn_1"], "");
  EXPECT_EQ(failures["plain_1"], "");
  EXPECT_NE(failures["never_1"].find("no result of 3 jobs, of the last since: job"),
            std::string::npos);
  EXPECT_NE(failures["never_1"].find("its result never came"), std::string::npos);
  EXPECT_NE(failures["dies_1"].find("ended as FAILED (NonZeroExitCode, status 9)"),
            std::string::npos)
      << failures["dies_1"];
  EXPECT_EQ(jobs.begun("silent_1").size(), 2u);
  EXPECT_EQ(jobs.begun("torn_1").size(), 2u);
  EXPECT_EQ(jobs.begun("never_1").size(), 3u);
  EXPECT_EQ(jobs.begun("plain_1").size(), 1u);
  EXPECT_TRUE(jobs.said_that("cut short")) << jobs.said;
}

TEST_F(SlurmCluster, OutlivesANode) {
  Jobs jobs(*home / "node");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  jobs.slurm.time = "5";
  auto evaluated =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {"hangs_2"}); });
  ASSERT_TRUE(jobs.waits_for({"hangs_2"}));
  const std::string victim = jobs.begun("hangs_2").front();
  cluster({"kill-node", victim});
  EXPECT_EQ(evaluated.get().at("hangs_2"), "");
  EXPECT_EQ(jobs.begun("hangs_2").size(), 2u);
  EXPECT_TRUE(jobs.said_that("on " + victim)) << jobs.said;
  EXPECT_TRUE(cluster({"start-node", victim}).good());
}

TEST_F(SlurmCluster, WaitsForAControllerThatRestarts) {
  Jobs jobs(*home / "controller");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  auto evaluated =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, several("slow", 4)); });
  ASSERT_TRUE(jobs.waits_for({"slow_0"}));
  ASSERT_TRUE(cluster({"stop-controller"}).good());
  auto later =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {"plain_late"}); });
  for (int i = 0; i < 100 && !jobs.said_that("tried again in"); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(cluster({"start-controller"}).good());
  for (const auto& [name, failure] : evaluated.get()) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(jobs.begun(name).size(), 1u) << name;
  }
  EXPECT_EQ(later.get().at("plain_late"), "");
  EXPECT_EQ(jobs.begun("plain_late").size(), 1u);
  EXPECT_TRUE(jobs.said_that("tried again in")) << jobs.said;
}

TEST_F(SlurmCluster, GivesNoMoreJobsToANodeWhoseGpuFails) {
  Jobs jobs(*home / "broken");
  jobs.options.tries = 6;
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  for (const auto& [name, failure] : jobs.evaluate(**launcher, several("broken", 8))) {
    EXPECT_EQ(failure, "");
    EXPECT_NE(jobs.begun(name).back(), "n1");
  }
  EXPECT_TRUE(jobs.said_that("node n1 gets no more jobs: node n1: the GPU throttles")) << jobs.said;
}

TEST_F(SlurmCluster, EndsWhereNoNodeIsLeft) {
  Jobs jobs(*home / "cursed");
  jobs.options.tries = 20;
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  for (const auto& [name, failure] : jobs.evaluate(**launcher, several("cursed", 6))) {
    EXPECT_NE(failure.find("Slurm takes no more jobs: "), std::string::npos) << failure;
    EXPECT_NE(failure.find("; without node n1 (node n1: no GPU)"), std::string::npos) << failure;
  }
  EXPECT_TRUE((*launcher)->trouble().has_value());
}

TEST_F(SlurmCluster, RefusesAGpuOfAnotherKind) {
  Jobs jobs(*home / "kinds");
  std::ofstream(jobs.folder.string() + ".txt") << "made";
  fs::create_directories(jobs.folder);
  std::ofstream(jobs.folder / "gpu") << "Some GPU";
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  for (const auto& [name, failure] : jobs.evaluate(**launcher, several("kinds", 6))) {
    EXPECT_EQ(failure, "");
    EXPECT_NE(jobs.begun(name).back(), "n2");
  }
  EXPECT_TRUE(jobs.said_that("its GPU is an Other GPU, the others' an Some GPU")) << jobs.said;

  Jobs mixed(*home / "mixed");
  mixed.options.mixed_gpus = true;
  auto tolerant = mixed.open();
  ASSERT_TRUE(tolerant) << tolerant.error().message;
  for (const auto& [name, failure] : mixed.evaluate(**tolerant, several("kinds", 6))) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(mixed.begun(name).size(), 1u);
  }
}

TEST_F(SlurmCluster, SaysWhatSlurmWouldNotTake) {
  Jobs jobs(*home / "wrong");
  const auto refusal = [&] {
    const auto launcher = jobs.open();
    return launcher ? std::string("taken") : launcher.error().message;
  };
  jobs.slurm.partition = "nowhere";
  EXPECT_NE(refusal().find("Invalid partition name specified (one GPU, --time 15, --partition "
                           "nowhere)"),
            std::string::npos)
      << refusal();
  jobs.slurm.partition = "gpus";
  jobs.slurm.constraint = "h200";
  EXPECT_NE(refusal().find("Invalid feature specification"), std::string::npos) << refusal();
  jobs.slurm.constraint = "";
  jobs.slurm.flags = {"--gres=gpu:2"};
  EXPECT_NE(refusal().find("not available"), std::string::npos) << refusal();
  jobs.slurm.flags = {};
  EXPECT_EQ(refusal(), "taken");
  // One of Slurm's commands alone.
  fs::create_symlink("/usr/bin/sbatch", *home / "sbatch");
  const ScopedVariable alone("PATH", home->path().string());
  EXPECT_NE(refusal().find("no squeue in the folders of PATH"), std::string::npos) << refusal();
  const ScopedVariable nothing("PATH", "/nowhere");
  EXPECT_NE(refusal().find("no sbatch in the folders of PATH"), std::string::npos) << refusal();
}

TEST_F(SlurmCluster, SaysWhereTheFolderIsNotShared) {
  Jobs jobs(*home / "apart");
  jobs.options.tries = 20;
  // On the nodes, another folder of this name.
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  std::ofstream(jobs.folder / "token") << "0000000000000000";
  const std::string unseen = "does not see " + fs::canonical(jobs.folder).string();
  const auto checked = (*launcher)->check_nodes(seconds(30));
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find(unseen), std::string::npos) << checked.error().message;
  EXPECT_NE(checked.error().message.find("--jobs-folder"), std::string::npos);
  // Without that job: two nodes are enough.
  for (const auto& [name, failure] : jobs.evaluate(**launcher, several("plain", 6))) {
    EXPECT_NE(failure.find("no job can run on the nodes so far (n"), std::string::npos) << failure;
    EXPECT_NE(failure.find(unseen), std::string::npos) << failure;
  }
  EXPECT_TRUE((*launcher)->trouble().has_value());
  EXPECT_EQ(jobs_left(), 0);

  Jobs elsewhere(*home / "program");
  elsewhere.options.program = "/nowhere/rekernel";
  const auto refusal = [&] {
    auto opened = elsewhere.open();
    const auto found = opened ? (*opened)->check_nodes(seconds(30)) : opened.error();
    return found ? std::string("found") : found.error().message;
  };
  EXPECT_NE(refusal().find("does not find /nowhere/rekern"), std::string::npos) << refusal();
  elsewhere.options.program = "/bin/false";
  EXPECT_NE(refusal().find("or cannot run it"), std::string::npos) << refusal();
}

TEST_F(SlurmCluster, LooksOnceWhetherNodesSeeTheFolder) {
  Jobs jobs(*home / "seen");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  EXPECT_TRUE((*launcher)->check_nodes(seconds(30)));
  EXPECT_TRUE((*launcher)->check_nodes(seconds(30)));
  EXPECT_EQ(jobs.said.find("looks whether the nodes see"),
            jobs.said.rfind("looks whether the nodes see"))
      << jobs.said;
  EXPECT_EQ(jobs_left(), 0);
  // No node is free: nobody knows, and nothing is left behind.
  Jobs waiting(*home / "waiting");
  waiting.slurm.partition = "cancelled";
  slurm({"sbatch", "--partition=urgent", "--nodelist=n2", "--gres=gpu:1", "--chdir=/",
         "--output=/dev/null", "--wrap=sleep 4"});
  const auto taken = [] {
    return !slurm({"squeue", "--noheader", "--partition=urgent", "--states=RUNNING"}).empty();
  };
  for (int i = 0; i < 50 && !taken(); ++i) std::this_thread::sleep_for(milliseconds(100));
  auto second = waiting.open();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE((*second)->check_nodes(seconds(1)));
  EXPECT_TRUE(waiting.said_that("its job is still in the queue; the first candidates will tell"))
      << waiting.said;
  EXPECT_EQ(jobs_left(), 0);
}

/// A node remembers of a network file system that a file is not there, until the folder above its
/// own is listed.
TEST_F(SlurmCluster, ListsFoldersOfWhichANodeKnowsNothingYet) {
  Jobs jobs(*home / "above/jobs");
  const fs::path program = *home / "programs/bin/program";
  fs::create_directories(program.parent_path());
  jobs.options.program = program;
  const fs::path tools = *home / "remembering";
  fs::create_directories(tools);
  jobs.options.environment = {"PATH=" + tools.string() + ":/usr/bin:/bin",
                              "SLURM_CONF=" + (*home / "slurm.conf").string()};
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  fs::rename(jobs.folder / "token", tools / "token");
  testing::write_text(tools / "ls", "#!/bin/sh\ncase $1 in\n" + (*home / "above").string() +
                                        ") cp '" + (tools / "token").string() + "' '" +
                                        (jobs.folder / "token").string() + "' ;;\n" +
                                        (*home / "programs").string() + ") ln -s /bin/true '" +
                                        program.string() + "' ;;\nesac\n");
  fs::permissions(tools / "ls", fs::perms::owner_all);
  const auto checked = (*launcher)->check_nodes(seconds(30));
  EXPECT_TRUE(checked) << checked.error().message;
  EXPECT_TRUE(fs::exists(program));
}

TEST_F(SlurmCluster, GoesOnAfterItsHostDied) {
  Jobs jobs(*home / "resume");
  const std::vector<std::string> names = several("slow", slow_candidates);
  const std::string program = own_executable();
  const pid_t host = ::fork();
  if (host == 0) {
    ::execl(program.c_str(), program.c_str(), "submit", jobs.folder.c_str(), nullptr);
    ::_exit(127);
  }
  // Some ran, some run, some wait in the queue.
  ASSERT_TRUE(jobs.waits_for(names, 4));
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  for (const auto& [name, failure] : jobs.evaluate(**launcher, names)) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(jobs.begun(name).size(), 1u) << name << " was evaluated twice";
  }
}

TEST_F(SlurmCluster, LeavesItsJobsAtTheDeadline) {
  Jobs jobs(*home / "deadline");
  const std::vector<std::string> names = several("slow", slow_candidates);
  jobs.options.deadline = std::chrono::steady_clock::now() + seconds(2);
  {
    auto launcher = jobs.open();
    ASSERT_TRUE(launcher) << launcher.error().message;
    for (const auto& [name, failure] : jobs.evaluate(**launcher, names)) {
      EXPECT_EQ(failure, left_at_deadline);
    }
    EXPECT_TRUE((*launcher)->has_left());
    EXPECT_EQ((*launcher)->trouble(), left_at_deadline);
  }
  jobs.options.deadline.reset();
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  for (const auto& [name, failure] : jobs.evaluate(**launcher, names)) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(jobs.begun(name).size(), 1u) << name << " was evaluated twice";
  }
}

TEST_F(SlurmCluster, CancelsItsJobs) {
  Jobs jobs(*home / "cancel");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  const std::vector<std::string> names = several("hangs", 5);
  auto evaluated = std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, names); });
  ASSERT_TRUE(jobs.waits_for(names));
  (*launcher)->cancel();
  for (const auto& [name, failure] : evaluated.get()) EXPECT_EQ(failure, "cancelled");
  EXPECT_TRUE((*launcher)->trouble().has_value());
  EXPECT_EQ(jobs_left(), 0);
}

/// The program itself, from the search's request to its end, with an interruption on the way.
TEST_F(SlurmCluster, IsWhereASearchIsInterruptedAndGoesOn) {
  const fs::path project = *home / "project";
  for (const char* name : {"generated", "results", "trajectories"}) {
    fs::create_directories(project / name);
  }
  testing::recorded_search(project / "trajectories/told.jsonl", testing::small_header(1, 3, 1));
  const ScopedVariable pause("REKERNEL_TEST_SECONDS", "4");
  const ScopedVariable key("OPENAI_API_KEY", "sk-not-for-nodes");
  const std::string search = "cd '" + project.string() +
                             "' && exec '" REKERNEL_PROGRAM "' search again --replies recorded " +
                             "--from told --launcher slurm --job-program '" + own_executable() +
                             "' ";
  const std::string fresh = search + "--problem softmax --rounds 1 --ideas 3 --branches 1";
  const std::string output = project / "output.txt";
  const auto run = [&](const std::string& command) {
    const int status = std::system(("(" + command + ") >'" + output + "' 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(run(fresh + " --partition nowhere"), 2);
  EXPECT_FALSE(fs::exists(project / "trajectories/again.jsonl"));
  EXPECT_FALSE(fs::exists(project / "trajectories/again.jobs"));

  const pid_t searching = ::fork();
  if (searching == 0) {
    ::execl("/bin/sh", "sh", "-c", (fresh + " >first.txt 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  Jobs jobs(project / "trajectories/again.jobs");
  const std::vector<std::string> names = {"r1_i1_b1", "r1_i2_b1", "r1_i3_b1"};
  EXPECT_TRUE(jobs.waits_for(names)) << testing::read_text(project / "first.txt");
  ::kill(searching, SIGINT);
  int status = 0;
  ::waitpid(searching, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_NE(testing::read_text(project / "first.txt").find("scancel"), std::string::npos);
  EXPECT_EQ(jobs_left(), 0);

  EXPECT_EQ(run(search + "--resume"), 0) << testing::read_text(output);
  EXPECT_EQ(run("cd '" + project.string() + "' && '" REKERNEL_PROGRAM "' replay again --table"), 0);
  const std::string recorded = testing::read_text(project / "trajectories/again.jsonl");
  for (const char* part : {"made up on n", "Some GPU", R"("reason":"rounds")"}) {
    EXPECT_NE(recorded.find(part), std::string::npos) << part;
  }
  for (const std::string& name : names) {
    for (const std::string& place : jobs.begun(name)) EXPECT_EQ(place.find("key"), place.npos);
  }
  // Another search does not take what lies there.
  fs::rename(project / "trajectories/again.jsonl", project / "trajectories/old.jsonl");
  testing::write_text(jobs.folder / "results/left", "over");
  EXPECT_EQ(run(fresh), 2);
  EXPECT_NE(testing::read_text(output).find("expected no jobs of another search"),
            std::string::npos);
}

/// Where Slurm pre-empts by cancelling, and where it would put the job back but ours forbid it.
TEST_F(SlurmCluster, SubmitsAnewWhatIsPreempted) {
  const auto preempted = [&](const std::string& partition, const std::string& node,
                             const std::string& candidate, int tries) {
    Jobs jobs(*home / (partition + ".jobs"));
    jobs.slurm.partition = partition;
    jobs.options.tries = tries;
    auto launcher = jobs.open();
    if (!launcher) return launcher.error().message;
    auto evaluated =
        std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {candidate}); });
    EXPECT_TRUE(jobs.waits_for({candidate}));
    take_node(node);
    const std::string failure = evaluated.get().at(candidate);
    EXPECT_TRUE(jobs.said_that("on " + node + " was pre-empted (PREEMPTED); submitted again"))
        << jobs.said;
    // What it is pre-empted is none of the times that it may fail.
    EXPECT_EQ(jobs.begun(candidate).size(),
              failure.empty() ? 2u : static_cast<unsigned>(tries + 1));
    return failure;
  };
  auto one = std::async(std::launch::async, preempted, "requeued", "n1", "hangs_1", 1);
  const std::string frail = preempted("cancelled", "n2", "frail_1", 2);
  EXPECT_NE(frail.find("no result of 2 jobs, of the last since: job"), std::string::npos) << frail;
  EXPECT_EQ(one.get(), "");
}

/// Some clusters forget within seconds what ended, and keep no accounts.
TEST_F(SlurmCluster, KnowsWhatIsPreemptedWhereSlurmForgets) {
  const fs::path squeue = *home / "forgetful/squeue";
  fs::create_directories(squeue.parent_path());
  testing::write_text(squeue,
                      "#!/bin/sh\nlisted=$(/usr/bin/squeue \"$@\") || exit\n"
                      "echo \"$listed\" | grep -e RUNNING -e PENDING -e COMPLETING\nexit 0\n");
  fs::permissions(squeue, fs::perms::owner_all);
  Jobs jobs(*home / "forgotten");
  jobs.slurm.partition = "cancelled";
  jobs.options.tries = 1;
  jobs.options.environment = {"PATH=" + squeue.parent_path().string() + ":/usr/bin:/bin",
                              "SLURM_CONF=" + (*home / "slurm.conf").string()};
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  auto evaluated =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {"hangs_1"}); });
  ASSERT_TRUE(jobs.waits_for({"hangs_1"}));
  take_node("n2");
  EXPECT_EQ(evaluated.get().at("hangs_1"), "");
  EXPECT_EQ(jobs.begun("hangs_1").size(), 2u);
  EXPECT_TRUE(jobs.said_that("was pre-empted (PREEMPTED); submitted again")) << jobs.said;
  // What somebody cancels is forgotten as well, and counts.
  auto cancelled =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {"hangs_2"}); });
  ASSERT_TRUE(jobs.waits_for({"hangs_2"}));
  slurm({"scancel", "--partition=cancelled"});
  const std::string failure = cancelled.get().at("hangs_2");
  EXPECT_NE(failure.find("is unknown to Slurm, and no result came"), std::string::npos) << failure;
}

TEST_F(SlurmCluster, WaitsForWhatSlurmPutsBackIntoItsQueue) {
  Jobs jobs(*home / "back");
  jobs.slurm.partition = "requeued";
  jobs.slurm.flags = {"--requeue"};
  jobs.options.tries = 1;
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  const auto put_back = [&](const std::string& candidate) {
    auto evaluated = std::async(std::launch::async,
                                [&, candidate] { return jobs.evaluate(**launcher, {candidate}); });
    EXPECT_TRUE(jobs.waits_for({candidate}));
    take_node("n1");
    const std::string told = candidate + ": Slurm ended job";
    for (int i = 0; i < 100 && !jobs.said_that(told); ++i) {
      std::this_thread::sleep_for(milliseconds(100));
    }
    EXPECT_TRUE(jobs.said_that(told) && jobs.said_that("(REQUEUED)")) << jobs.said;
    return evaluated;
  };
  auto first = put_back("hangs_1");
  // It would begin again in two minutes.
  const std::string waiting = slurm({"squeue", "--noheader", "--partition=requeued", "-o", "%i"});
  slurm({"scontrol", "update", "JobId=" + waiting.substr(0, waiting.find('\n')), "StartTime=now"});
  EXPECT_EQ(first.get().at("hangs_1"), "");
  EXPECT_EQ(jobs.begun("hangs_1").size(), 2u);
  EXPECT_FALSE(jobs.said_that("submitted again")) << jobs.said;

  auto second = put_back("hangs_2");
  (*launcher)->cancel();
  EXPECT_EQ(second.get().at("hangs_2"), "cancelled");
  EXPECT_EQ(jobs_left(), 0);
}

/// A verdict of a process that stood still would be another.
TEST_F(SlurmCluster, TakesNoResultOfAJobThatWasSuspended) {
  Jobs jobs(*home / "suspended");
  jobs.options.tries = 1;
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  auto evaluated =
      std::async(std::launch::async, [&] { return jobs.evaluate(**launcher, {"slow_1"}); });
  ASSERT_TRUE(jobs.waits_for({"slow_1"}));
  const std::string job = slurm({"squeue", "--noheader", "--partition=gpus", "-o", "%i"});
  const std::string id = job.substr(0, job.find('\n'));
  slurm({"scontrol", "suspend", id});
  std::this_thread::sleep_for(seconds(1));
  slurm({"scontrol", "resume", id});
  EXPECT_EQ(evaluated.get().at("slow_1"), "");
  EXPECT_EQ(jobs.begun("slow_1").size(), 2u);
  EXPECT_TRUE(jobs.said_that("(SUSPENDED), so that its result is not taken")) << jobs.said;
}

TEST_F(SlurmCluster, WaitsForRoomInTheQueue) {
  Jobs jobs(*home / "full");
  auto launcher = jobs.open();
  ASSERT_TRUE(launcher) << launcher.error().message;
  ASSERT_TRUE(cluster({"stop-controller"}).good());
  const std::string limit =
      "sed -i 's/^MaxJobCount=.*/MaxJobCount=4/' " + (*home / "slurm.conf").string();
  ASSERT_EQ(std::system(limit.c_str()), 0);
  ASSERT_TRUE(cluster({"start-controller"}).good());
  for (const auto& [name, failure] : jobs.evaluate(**launcher, several("plain", 6))) {
    EXPECT_EQ(failure, "");
    EXPECT_EQ(jobs.begun(name).size(), 1u) << name;
  }
  EXPECT_TRUE(jobs.said_that("Slurm takes no job now")) << jobs.said;
}

// The last, since it waits for Slurm's minute.
TEST_F(SlurmCluster, SubmitsAnewWhatTimedOut) {
  EXPECT_EQ(timeout.get(), "");
  EXPECT_EQ(timed_out->begun("hangs_1").size(), 2u);
  EXPECT_TRUE(timed_out->said_that("was not done in its time (--time 1 gives it so much)"))
      << timed_out->said;
}

// ── Without Slurm ──────────────────────────────────────────────────────────────────────────────

TEST(SlurmRefusal, TellsALimitFromAnError) {
  EXPECT_EQ(
      refusal_of("sbatch: error: Batch job submission failed: Invalid partition name specified"),
      SlurmRefusal::permanent);
  EXPECT_EQ(
      refusal_of("sbatch: error: Batch job submission failed: Requested node configuration is "
                 "not available"),
      SlurmRefusal::permanent);
  EXPECT_EQ(refusal_of("Batch job submission failed: Requested partition configuration not "
                       "available now"),
            SlurmRefusal::full);
  EXPECT_EQ(refusal_of("sbatch: error: AssocMaxSubmitJobLimit"), SlurmRefusal::full);
  EXPECT_EQ(
      refusal_of("Batch job submission failed: Job violates accounting/QOS policy (job submit "
                 "limit, user's size and/or time limits)"),
      SlurmRefusal::full);
  EXPECT_EQ(refusal_of("Batch job submission failed: Unable to contact slurm controller (connect "
                       "failure)"),
            SlurmRefusal::unreachable);
  EXPECT_EQ(refusal_of("Batch job submission failed: Socket timed out on send/recv operation"),
            SlurmRefusal::unreachable);
  EXPECT_EQ(refusal_of("sbatch: fatal: Could not establish a configuration source"),
            SlurmRefusal::unreachable);
  EXPECT_EQ(refusal_of("Batch job submission failed: Invalid job array specification"),
            SlurmRefusal::array);
}

TEST(Squeue, IsReadLineByLine) {
  const auto tasks = parse_squeue(
      "8|2|PENDING|0||rekernel-1|Resources|1|\n"
      "12|N/A|FAILED|19200|n1|rekernel-2|NonZeroExitCode|0|\n");
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ((*tasks)[0].index, 2u);
  EXPECT_EQ((*tasks)[0].restarts, 1);
  EXPECT_FALSE(is_over((*tasks)[0]));
  EXPECT_TRUE(is_over((*tasks)[1]));
  EXPECT_NE(
      what_ended((*tasks)[1], {}, "/shared", "/bin/program").find("job 12 on n1 does not see"),
      std::string::npos);
  const auto bad = parse_squeue("squeue: something else\n");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("got 'squeue: something else'"), std::string::npos);
}

TEST(Sbatch, ExcludesWhatTheOwnerExcludesToo) {
  SlurmJobOptions options{"p", "a", "c", "0:30:00", {"--mem=1G", "--exclude=n7"}};
  const auto arguments = sbatch_arguments(options, "name", 3, {"n2"});
  for (const char* expected : {"--partition=p", "--account=a", "--constraint=c", "--time=0:30:00",
                               "--mem=1G", "--array=0-2", "--gres=gpu:1", "--job-name=name"}) {
    EXPECT_NE(std::find(arguments.begin(), arguments.end(), expected), arguments.end()) << expected;
  }
  EXPECT_EQ(arguments.back(), "--exclude=n2,n7");
}

TEST(JobFolder, KnowsACutFile) {
  TemporaryFolder temporary;
  const auto folder = JobFolder::open(temporary / "jobs");
  ASSERT_TRUE(folder) << folder.error().message;
  const Candidate candidate = named("plain_1");
  const auto key = folder->put_request(candidate, {});
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_TRUE(folder->is_used());
  const auto judge = [](const Candidate& one, const EvaluateOptions&) { return blank_report(one); };
  ASSERT_TRUE(run_job(folder->path(), *key, judge));
  const auto result = folder->read_result(*key);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->report.evaluation.sha256, candidate_sha256(candidate));
  const fs::path path = folder->path() / "results" / *key;
  const std::string text = testing::read_text(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{20}, text.size() / 2, text.size() - 1}) {
    testing::write_text(path, text.substr(0, size));
    const auto cut = folder->read_result(*key);
    ASSERT_FALSE(cut) << size;
    EXPECT_NE(cut.error().message.find("cut short"), std::string::npos);
  }
  // A job takes no such file for a result that is there already.
  ASSERT_TRUE(run_job(folder->path(), *key, judge));
  EXPECT_TRUE(folder->read_result(*key));
  const auto no_judge = [](const Candidate& one, const EvaluateOptions&) {
    ADD_FAILURE() << "evaluated twice";
    return blank_report(one);
  };
  EXPECT_TRUE(run_job(folder->path(), *key, no_judge));
  EXPECT_EQ(folder->results(), std::set<std::string>{*key});
  EXPECT_FALSE(run_job(folder->path(), "../token", judge));

  JobResult other = *result;
  other.report.evaluation.harness = "another";
  const auto refusal = folder->refusal(other, "sm_90a", false);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("its program is another version (judge another, here "),
            std::string::npos);
  EXPECT_EQ(folder->refusal(*result, "sm_90a", false), std::nullopt);
  other = *result;
  other.report.evaluation.target = "sm_89";
  EXPECT_EQ(folder->refusal(other, "sm_90a", false),
            "node " + other.node + ": its GPU runs sm_89, the search writes code for sm_90a");
}

TEST(CommandLauncher, RefusesAPrefixWithoutItsProgram) {
  TemporaryFolder temporary;
  testing::write_text(temporary / "plain text", "no program");
  const auto open = [&](const std::string& prefix) {
    const auto launcher = CommandLauncher::open(*JobFolder::open(temporary / "jobs"), prefix,
                                                Jobs(temporary / "jobs").options, {});
    return launcher ? std::string("taken") : launcher.error().message;
  };
  {
    const ScopedVariable path("PATH", "/bin:/nowhere");
    EXPECT_EQ(open("A=1 sssh gpu7"),
              "--prefix 'A=1 sssh gpu7': no program sssh in the folders of PATH (/bin:/nowhere)");
  }
  EXPECT_EQ(open("/nowhere/run it"), "--prefix '/nowhere/run it': no program /nowhere/run");
  const std::string text = (temporary / "plain text").string();
  EXPECT_EQ(open("'" + text + "' -x"),
            "--prefix ''" + text + "' -x': " + text + " is not executable (chmod +x)");
  EXPECT_NE(open("ssh 'gpu7").find("the shell cannot read it: "), std::string::npos);
  for (const char* good : {"env A=b", "cd / && env", "exec", "A='b c' \"/bin/sh\" -c '\"$@\"' sh",
                           "$(echo env)", ""}) {
    EXPECT_EQ(open(good), "taken") << good;
  }
}

TEST(CommandLauncher, StartsAProgramBehindAPrefix) {
  TemporaryFolder temporary("/tmp");
  Jobs jobs(temporary / "jobs");
  CommandTimes times{seconds(20), milliseconds(500), milliseconds(50)};
  const auto open = [&](const std::string& prefix) {
    return std::move(
        *CommandLauncher::open(*JobFolder::open(jobs.folder), prefix, jobs.options, times));
  };
  auto launcher = open("env SLURMD_NODENAME='a node'");
  auto failures = jobs.evaluate(*launcher, {"plain_1", "silent_1", "torn_1", "never_1", "dies_1"});
  EXPECT_EQ(failures["plain_1"] + failures["silent_1"] + failures["torn_1"], "");
  EXPECT_NE(failures["never_1"].find("no result of 3 jobs"), std::string::npos);
  EXPECT_NE(failures["dies_1"].find("the command failed: it ended with status 9"),
            std::string::npos)
      << failures["dies_1"];
  EXPECT_EQ(jobs.begun("plain_1"), std::vector<std::string>{"a node"});
  // What is there already is not evaluated again.
  EXPECT_EQ(open("false")->evaluate(named("plain_1"), {}).failure, "");
  EXPECT_EQ(jobs.begun("plain_1").size(), 1u);

  jobs.options.deadline = std::chrono::steady_clock::now() + milliseconds(500);
  EXPECT_EQ(open("")->evaluate(named("hangs_2"), {}).failure, left_at_deadline);
  jobs.options.deadline.reset();

  auto hung = open("");
  auto evaluated =
      std::async(std::launch::async, [&] { return hung->evaluate(named("hangs_1"), {}).failure; });
  ASSERT_TRUE(jobs.waits_for({"hangs_1"}));
  hung->cancel();
  EXPECT_EQ(evaluated.get(), "cancelled");
}

}  // namespace

int submit_slow_candidates(const char* folder) {
  Jobs jobs(folder);
  auto launcher = jobs.open();
  if (launcher) jobs.evaluate(**launcher, several("slow", slow_candidates));
  return launcher ? 0 : 2;
}

}  // namespace rekernel
