#include "harness/isolate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace rekernel {
namespace {

using namespace std::chrono_literals;
using End = ChildOutcome::End;

ChildOutcome shell(const std::string& script, std::string_view input = {},
                   std::chrono::milliseconds startup = 5s, std::chrono::milliseconds run = 5s) {
  Result<ChildOutcome> outcome = run_child({"/bin/sh", "-c", script}, input, startup, run);
  EXPECT_TRUE(outcome.ok());
  return *outcome;
}

TEST(Isolate, PassesInputAndReturnsTheResultPipe) {
  const std::string input(300'000, 'x');
  const ChildOutcome outcome = shell("echo started >&3; wc -c >&3", input);
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.result, "300000\n");
}

TEST(Isolate, StandardOutputIsNotAResult) {
  const ChildOutcome outcome = shell("echo started >&3; echo forged; head -c 50000000 /dev/zero");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.result, "");
}

TEST(Isolate, ExitStatusAndLastWordsAreKept) {
  const ChildOutcome outcome = shell("echo first >&2; echo 'the reason' >&2; exit 7");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.last_words, "the reason");
}

TEST(Isolate, ASignalIsNamed) {
  const ChildOutcome outcome = shell("kill -SEGV $$");
  EXPECT_EQ(outcome.end, End::signalled);
  EXPECT_EQ(outcome.code, SIGSEGV);
}

TEST(Isolate, BothDeadlinesKillTheWholeGroup) {
  EXPECT_EQ(shell("sleep 100 & sleep 100", {}, 200ms, 5s).end, End::startup_deadline);
  EXPECT_EQ(shell("echo started >&3; sleep 100 & sleep 100", {}, 5s, 200ms).end, End::run_deadline);
}

TEST(Isolate, FloodsOnStandardErrorStayBounded) {
  const ChildOutcome outcome =
      shell("head -c 20000000 /dev/zero | tr '\\0' 'e' >&2; echo >&2; echo last >&2");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.last_words, "last");
}

TEST(Isolate, NoOtherDescriptorIsInherited) {
  const int secret = ::dup(STDIN_FILENO);
  ASSERT_GT(secret, result_descriptor);
  // No pipeline: while it starts one, the shell holds the pipe's ends itself.
  const ChildOutcome outcome = shell("echo started >&3; ls /proc/$$/fd >&3; true");
  ::close(secret);
  EXPECT_EQ(outcome.result, "0\n1\n2\n3\n");
}

TEST(Isolate, AProgramThatIsNotThereFails) {
  Result<ChildOutcome> outcome = run_child({"/nonexistent/program"}, {}, 1s, 1s);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->end, End::exited);
  EXPECT_EQ(outcome->code, 127);
}

}  // namespace
}  // namespace rekernel
