#include "harness/jobs/command_launcher.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "tests/harness/jobs/launched_jobs.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Jobs;
using testing::named;

TEST(CommandLauncher, RefusesAPrefixWithoutItsProgram) {
  TemporaryFolder temporary;
  ASSERT_TRUE(write_file_atomically(temporary / "plain text", "no program"));
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

TEST(CommandLauncher, StartsAProgramAfterAPrefix) {
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
}  // namespace rekernel
