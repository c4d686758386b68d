// The launcher against a real Slurm, which the test starts. The evaluation itself is made up
// (jobs_main.cpp), since no GPU is needed for what is tested here.

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

#include "harness/jobs/slurm_launcher.h"
#include "harness/process/isolate.h"
#include "harness/process/tool.h"
#include "tests/harness/jobs/launched_jobs.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Jobs;
using testing::named;
using testing::several;

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
    command.arguments = {REKERNEL_SOURCE_DIR "/tests/harness/jobs/slurm_cluster.sh"};
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

  /// How many jobs are left but the one that is to time out, once nothing ends any more.
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
  EXPECT_EQ(jobs.said_that("Slurm accepts no"), false) << jobs.said;
  EXPECT_TRUE(fs::is_empty(jobs.folder / "batches"));
  EXPECT_TRUE(fs::is_empty(jobs.folder / "requests"));
  for (int i = 0; i < 50 && !fs::is_empty(jobs.folder / "logs"); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(fs::is_empty(jobs.folder / "logs"));
  EXPECT_EQ((*launcher)->evaluate(named("plain_9"), {}).toolchain.substr(0, 10), "made up on");
}

TEST_F(SlurmCluster, SubmitsAgainWhatLeavesNoWholeResult) {
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
  EXPECT_TRUE(jobs.said_that("truncated")) << jobs.said;
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
    EXPECT_NE(failure.find("Slurm accepts no more jobs: "), std::string::npos) << failure;
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
  EXPECT_EQ(jobs.said.find("checks whether the nodes see"),
            jobs.said.rfind("checks whether the nodes see"))
      << jobs.said;
  EXPECT_EQ(jobs_left(), 0);
  // No node is free: nobody knows, and nothing is left.
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
TEST_F(SlurmCluster, SubmitsAgainWhatIsPreempted) {
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
  // It would start again in two minutes.
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
  EXPECT_TRUE(jobs.said_that("(SUSPENDED), so its result does not count")) << jobs.said;
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
  EXPECT_TRUE(jobs.said_that("Slurm accepts no jobs now")) << jobs.said;
}

// The last, since it waits for Slurm's minute.
TEST_F(SlurmCluster, SubmitsAgainWhatTimedOut) {
  EXPECT_EQ(timeout.get(), "");
  EXPECT_EQ(timed_out->begun("hangs_1").size(), 2u);
  EXPECT_TRUE(timed_out->said_that("did not finish in its time (--time 1)")) << timed_out->said;
}

}  // namespace

int submit_slow_candidates(const char* folder) {
  Jobs jobs(folder);
  auto launcher = jobs.open();
  if (launcher) jobs.evaluate(**launcher, several("slow", slow_candidates));
  return launcher ? 0 : 2;
}

}  // namespace rekernel
