// How the launcher keeps the processes that meet no candidate's code, and when it lets them go:
// with a stand-in for NVML and one for the referee (fake_judges.cpp).

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "../gpu/fake_nvml.h"
#include "fake_judges.h"
#include "harness/evaluation/launcher.h"
#include "harness/gpu/exclusive.h"
#include "harness/gpu/identity.h"

namespace rekernel {
namespace {

using namespace std::chrono_literals;
using testing::Behaviour;
using Clock = std::chrono::steady_clock;

/// Digits of this process alone: what runs beside it locks other GPUs.
std::string own_digits() {
  const std::string number = std::to_string(::getpid());
  return std::string(12 - number.size(), '0') + number;
}
const std::string uuid = "0123456789abcdef0123" + own_digits();

/// What the stand-in says of itself and of the processes that came for the candidate.
struct Judge {
  pid_t process = 0;
  int evaluations = 0;
  std::string preparation;
  std::set<pid_t> runners;
};

Judge judge_of(const EvaluationReport& report) {
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.evaluation.status, Status::wrong_result) << report.evaluation.message;
  Judge judge;
  std::istringstream words(report.evaluation.message);
  words >> judge.process >> judge.evaluations >> judge.preparation;
  for (pid_t runner = 0; words >> runner;) judge.runners.insert(runner);
  EXPECT_GT(judge.process, 0) << report.evaluation.message;
  return judge;
}

/// The processes for candidates that are there now.
std::set<pid_t> runners() {
  std::set<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) {
      std::ifstream command("/proc/" + std::to_string(child) + "/cmdline");
      std::string program;
      std::string name;
      std::getline(command, program, '\0');
      std::getline(command, name, '\0');
      if (name == "runner-worker") found.insert(child);
    }
  }
  return found;
}

bool is_there(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

bool is_gone_within(pid_t process, std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (is_there(process) && Clock::now() < end) std::this_thread::sleep_for(10ms);
  return !is_there(process);
}

class KeptJudges : public ::testing::Test {
 protected:
  void SetUp() override {
    void* library = ::dlopen(REKERNEL_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    lists = reinterpret_cast<FakeNvmlLists* (*)()>(::dlsym(library, "fake_nvml_lists"))();
    *lists = {};
    lists->uuid = "GPU-01234567-89ab-cdef-0123-" + own_digits();
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    // The numbers of processes are ours then.
    ::setenv("REKERNEL_SANDBOX", "off", 1);
    number_gpus_by_bus();
    Result<Candidate> loaded =
        load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/adversarial/honest");
    ASSERT_TRUE(loaded) << loaded.error().message;
    candidate = *std::move(loaded);
  }

  void TearDown() override {
    launcher.reset();
    for (const char* folder : {"/run/lock", "/tmp"}) {
      const std::string lock = std::string(folder) + "/rekernel-gpu-" + uuid + ".lock";
      std::filesystem::remove(lock);
      std::filesystem::remove(lock + ".next");
    }
  }

  EvaluationReport evaluate(Behaviour behaviour = Behaviour::goes_on,
                            EvaluateOptions::Mode mode = EvaluateOptions::Mode::verdict) {
    EvaluateOptions options;
    options.mode = mode;
    options.seed = static_cast<std::uint64_t>(behaviour);
    options.startup_deadline = behaviour == Behaviour::never_starts ? 2s : 60s;
    options.run_deadline = behaviour == Behaviour::never_ends ? 1s : 60s;
    return launcher->evaluate(candidate, options);
  }

  FakeNvmlLists* lists = nullptr;
  Candidate candidate;
  std::unique_ptr<LocalLauncher> launcher = std::make_unique<LocalLauncher>();
};

TEST_F(KeptJudges, ServeOneEvaluationAfterTheOtherAndEndWithTheLauncher) {
  const Judge first = judge_of(evaluate());
  const Judge second = judge_of(evaluate());
  EXPECT_EQ(second.process, first.process);
  EXPECT_EQ(first.evaluations, 1);
  EXPECT_EQ(second.evaluations, 2);
  EXPECT_EQ(first.preparation, "unprepared");
  launcher.reset();
  EXPECT_FALSE(is_there(first.process));
  EXPECT_TRUE(GpuLock::acquire(uuid, Clock::now(), nullptr));
}

TEST_F(KeptJudges, HaveTheNextCandidatesProcessesStartedAheadOnceTheyServedAgain) {
  const Judge first = judge_of(evaluate());
  EXPECT_EQ(first.runners.size(), 2u);
  EXPECT_EQ(runners(), std::set<pid_t>());
  const Judge second = judge_of(evaluate());
  std::set<pid_t> ahead;
  const auto end = Clock::now() + 10s;
  while (ahead.size() < 2 && Clock::now() < end) ahead = runners();  // they are about to start
  EXPECT_EQ(ahead.size(), 2u);
  for (const pid_t ended : second.runners) EXPECT_FALSE(ahead.contains(ended));
  EXPECT_EQ(judge_of(evaluate()).runners, ahead);
  // Others wait for no lock, and there may be many of them.
  EXPECT_EQ(judge_of(evaluate(Behaviour::goes_on, EvaluateOptions::Mode::errors)).runners.size(),
            2u);
  EXPECT_EQ(runners(), std::set<pid_t>());
  launcher.reset();
  EXPECT_EQ(runners(), std::set<pid_t>());
}

TEST_F(KeptJudges, BeginBeforeTheFirstCandidateWhereOneIsExpected) {
  launcher->prepare(0);
  const Judge judge = judge_of(evaluate());
  EXPECT_EQ(judge.preparation, "prepared");
  EXPECT_EQ(judge.evaluations, 1);
  launcher->prepare(0);
  EXPECT_EQ(judge_of(evaluate()).process, judge.process);
}

TEST_F(KeptJudges, AreReplacedWhereTheySayThatTheyEnd) {
  const Judge last = judge_of(evaluate(Behaviour::ends));
  const Judge next = judge_of(evaluate());
  EXPECT_NE(next.process, last.process);
  EXPECT_EQ(next.evaluations, 1);
}

TEST_F(KeptJudges, ThatDiedWithNothingToDoCostNobodyAnEvaluation) {
  const Judge first = judge_of(evaluate());
  ::kill(first.process, SIGKILL);
  const Judge next = judge_of(evaluate());
  EXPECT_NE(next.process, first.process);
}

TEST_F(KeptJudges, ThatDieAgainAndAgainSayNothingAboutACandidate) {
  judge_of(evaluate());
  EXPECT_EQ(evaluate(Behaviour::dies).failure, "the judge ended with status 5");
  judge_of(evaluate());
}

TEST_F(KeptJudges, ThatHangMeetADeadlineAndSayNothingAboutACandidate) {
  EXPECT_EQ(evaluate(Behaviour::never_starts).failure,
            "the judge was not ready by the start-up deadline");
  EXPECT_EQ(evaluate(Behaviour::never_ends).failure,
            "the judge's own work was not done by its deadline");
  // The candidate is in it then.
  const EvaluationReport once = evaluate(Behaviour::never_ends, EvaluateOptions::Mode::once);
  EXPECT_EQ(once.failure, "");
  EXPECT_EQ(once.evaluation.status, Status::timed_out);
  judge_of(evaluate());
}

TEST_F(KeptJudges, JudgeACandidateInAxesAtOtherSizesToo) {
  Result<Candidate> loaded =
      load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/in_axes/slow_softmax");
  ASSERT_TRUE(loaded) << loaded.error().message;
  candidate = *std::move(loaded);
  const Evaluation right = evaluate(Behaviour::passes).evaluation;
  EXPECT_EQ(right.status, Status::passed) << right.message;
  EXPECT_TRUE(right.badges.has(Badge::any_size)) << right.badge_notes;
  ASSERT_TRUE(right.evidence);
  int timed = 0;
  for (const SizeResult& one : right.evidence->other_sizes) {
    // Sizes that are not timed are judged in the processes of the verdict, others in fresh ones.
    if (one.median_ns != 0) ++timed;
    EXPECT_EQ(one.tolerance_share, 1 + timed);
    if (one.median_ns == 0) continue;
    // The stand-in saw these sizes.
    EXPECT_EQ(one.median_ns, one.sizes.at("columns"));
  }
  EXPECT_EQ(timed, 3);
  const EvaluationReport at_once = evaluate();
  EXPECT_EQ(at_once.evaluation.status, Status::wrong_result);
  EXPECT_FALSE(at_once.evaluation.evidence)
      << "one that is wrong at its own sizes is asked no more";
  const EvaluationReport failed = evaluate(Behaviour::talks_nonsense);
  EXPECT_NE(failed.failure, "");
  EXPECT_FALSE(failed.evaluation.evidence) << "nor one without a verdict";
  const Evaluation wrong = evaluate(Behaviour::passes_at_own_sizes).evaluation;
  EXPECT_EQ(wrong.status, Status::passed) << wrong.message;
  EXPECT_FALSE(wrong.badges.has(Badge::any_size));
  EXPECT_NE(wrong.badge_notes.find("any_size: wrong_result at "), std::string::npos);
}

TEST_F(KeptJudges, ThatTalkNonsenseAreNotBelieved) {
  EXPECT_EQ(evaluate(Behaviour::talks_nonsense).failure, "the referee's words make no sense");
  judge_of(evaluate());
}

TEST_F(KeptJudges, LeaveTheGpuToWhoWaitsForIt) {
  const Judge judge = judge_of(evaluate());
  EXPECT_FALSE(GpuLock::acquire(uuid, Clock::now(), nullptr));
  EXPECT_TRUE(GpuLock::acquire(uuid, Clock::now() + 5s, nullptr));
  EXPECT_FALSE(is_there(judge.process));
  // The next evaluation starts with new ones.
  EXPECT_NE(judge_of(evaluate()).process, judge.process);
}

TEST_F(KeptJudges, LeaveTheGpuAfterAWhileWithoutWork) {
  const Judge judge = judge_of(evaluate());
  std::this_thread::sleep_for(2s);
  EXPECT_TRUE(is_there(judge.process));
  EXPECT_TRUE(is_gone_within(judge.process, 15s));
  EXPECT_TRUE(GpuLock::acquire(uuid, Clock::now() + 1s, nullptr));
}

TEST_F(KeptJudges, DoNotCountAsAnotherProcessAndOthersDo) {
  judge_of(evaluate());
  lists->compute.processes = {{1, 1000}};
  EXPECT_NE(evaluate().failure.find("holds a context on the GPU"), std::string::npos);
  lists->compute.processes = {};
  judge_of(evaluate());
}

TEST_F(KeptJudges, AreAsManyAsThereAreEvaluationsAtATime) {
  EvaluateOptions options;
  options.mode = EvaluateOptions::Mode::errors;  // which waits for no lock
  options.seed = static_cast<std::uint64_t>(Behaviour::goes_on);
  std::mutex mutex;
  std::set<pid_t> judges;
  int evaluations = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 3; ++n) {
          const Judge judge = judge_of(launcher->evaluate(candidate, options));
          const std::lock_guard lock(mutex);
          judges.insert(judge.process);
          ++evaluations;
        }
      });
    }
  }
  EXPECT_EQ(evaluations, 9);
  EXPECT_LE(judges.size(), 3u);
}

}  // namespace
}  // namespace rekernel
