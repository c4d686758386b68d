#include "harness/process/isolate.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/process/system_calls.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using End = ChildOutcome::End;
using Clock = std::chrono::steady_clock;

ChildCommand child(std::vector<std::string> mode) {
  ChildCommand command;
  command.arguments = {own_executable(), "misbehave"};
  command.arguments.insert(command.arguments.end(), mode.begin(), mode.end());
  command.deadline = 20s;
  return command;
}

ChildOutcome outcome_of(const ChildCommand& command) {
  Result<ChildOutcome> outcome = run_child(command);
  if (!outcome) throw std::runtime_error(outcome.error().message);
  return *outcome;
}

fs::path scratch_file(const std::string& name) {
  return fs::path(::testing::TempDir()) / (name + "." + std::to_string(::getpid()));
}

TEST(Isolate, PassesInputAndReturnsTheResultPipe) {
  ChildCommand command = child({"count-input"});
  command.input = std::string(300'000, 'x');
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.result, "300000");
}

TEST(Isolate, AChildThatReadsNothingIsNoObstacle) {
  ChildCommand command = child({"fail"});
  command.input = std::string(10'000'000, 'x');
  EXPECT_EQ(outcome_of(command).code, 7);
}

TEST(Isolate, ExitStatusAndLastWordsAreKept) {
  const ChildOutcome outcome = outcome_of(child({"fail"}));
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.last_words, "the reason");
}

TEST(Isolate, ASignalIsNamed) {
  const ChildOutcome outcome = outcome_of(child({"segfault"}));
  EXPECT_EQ(outcome.end, End::signalled);
  EXPECT_EQ(outcome.code, SIGSEGV);
}

TEST(Isolate, AProgramThatIsNotThereFails) {
  ChildCommand command = child({});
  command.arguments = {"/nonexistent/program"};
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 127);
}

// --- Reports -------------------------------------------------------------------------------------

TEST(Isolate, StandardOutputAndErrorAreNoResult) {
  const ChildOutcome outcome = outcome_of(child({"forge"}));
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.result, "");
}

TEST(Isolate, GigabytesOfOutputCostNothing) {
  const ChildOutcome outcome = outcome_of(child({"print"}));
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.result, "");
  EXPECT_EQ(outcome.last_words, "last words");
}

TEST(Isolate, AReportWithoutEndIsCutOff) {
  const ChildOutcome outcome = outcome_of(child({"report"}));
  EXPECT_EQ(outcome.end, End::result_too_long);
  EXPECT_LT(outcome.result.size(), 80u << 20);
}

TEST(Isolate, DeathInTheMiddleOfAReportIsNoSuccess) {
  const ChildOutcome outcome = outcome_of(child({"die-while-writing"}));
  EXPECT_EQ(outcome.end, End::signalled);
  EXPECT_EQ(outcome.code, SIGKILL);
}

TEST(Isolate, AChildThatHangsAfterItsReportIsKilled) {
  ChildCommand command = child({"close-and-hang"});
  command.exit_deadline = 200ms;
  const auto begin = Clock::now();
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::signalled);
  EXPECT_EQ(outcome.code, SIGKILL);
  EXPECT_LT(Clock::now() - begin, 10s);
}

// --- Deadlines and limits ------------------------------------------------------------------------

TEST(Isolate, TheDeadlineKillsWhateverAChildStarted) {
  const fs::path note = scratch_file("left_behind");
  fs::remove(note);
  ChildCommand command = child({"leave-a-process", note.string()});
  command.limits.file_bytes = 100;
  command.deadline = 500ms;
  const auto begin = Clock::now();
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::deadline);
  EXPECT_LT(Clock::now() - begin, 15s);
  pid_t left = 0;
  std::ifstream(note) >> left;
  ASSERT_GT(left, 0);
  // What has died but was not yet collected by its new parent still answers to a signal.
  std::string state = "gone";
  std::ifstream status("/proc/" + std::to_string(left) + "/status");
  for (std::string word; status >> word;) {
    if (word == "State:") status >> state;
  }
  EXPECT_TRUE(state == "gone" || state == "Z" || state == "X") << state;
  fs::remove(note);
}

TEST(Isolate, MemoryIsLimited) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs all addresses";
#endif
  ChildCommand command = child({"allocate"});
  command.limits.address_space_bytes = 256 << 20;
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.result.rfind("refused after ", 0), 0u) << outcome.result;
  EXPECT_LT(std::stoi(outcome.result.substr(14)), 256);
}

TEST(Isolate, ProcessorTimeIsLimited) {
  ChildCommand command = child({"spin"});
  command.limits.processor_time = 1s;
  const ChildOutcome outcome = outcome_of(command);
  EXPECT_EQ(outcome.end, End::signalled);
  EXPECT_EQ(outcome.code, SIGXCPU);
}

TEST(Isolate, ASpinningChildMeetsItsDeadline) {
  ChildCommand command = child({"spin"});
  command.deadline = 200ms;
  EXPECT_EQ(outcome_of(command).end, End::deadline);
}

TEST(Isolate, FileSizeIsLimited) {
  const fs::path file = scratch_file("huge");
  ChildCommand command = child({"write", file.string()});
  command.limits.file_bytes = 100'000;
  EXPECT_EQ(outcome_of(command).result, "100000, then File too large");
  EXPECT_EQ(fs::file_size(file), 100'000u);
  fs::remove(file);
}

TEST(Isolate, OpenFilesAreLimited) {
  ChildCommand command = child({"open-files"});
  command.limits.open_files = 50;
  // Four are open from the start.
  EXPECT_EQ(outcome_of(command).result, "46, then Too many open files");
}

TEST(Isolate, ALockedChildCanStartThreadsOnly) {
  EXPECT_EQ(outcome_of(child({"start-processes"})).result,
            "fork: Resource temporarily unavailable, spawn: Resource temporarily unavailable, "
            "exec: Permission denied, thread: done");
}

// --- Descriptors ---------------------------------------------------------------------------------

TEST(Isolate, OnlyWhatIsHandedOverIsInherited) {
  const int secret = ::fcntl(STDIN_FILENO, F_DUPFD, 20);
  ASSERT_GT(secret, result_descriptor);
  EXPECT_EQ(outcome_of(child({"list-descriptors"})).result, "0 1 2 3 ");
  ChildCommand command = child({"list-descriptors"});
  command.inherited = {::dup(secret), ::dup(secret)};
  const int last = command.inherited[1];
  EXPECT_EQ(outcome_of(command).result, "0 1 2 3 4 5 ");
  EXPECT_LT(::fcntl(last, F_GETFD), 0) << "still open here";
  ::close(secret);
}

}  // namespace
}  // namespace rekernel
