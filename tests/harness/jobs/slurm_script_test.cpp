// What jobs run, run here by the shell: no Slurm is needed to read a script.

#include "harness/jobs/slurm_script.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "harness/base/files.h"
#include "harness/jobs/slurm.h"
#include "harness/process/tool.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

class SlurmScript : public ::testing::Test {
 protected:
  /// A program whose words and status these are.
  std::string program(const std::string& body) {
    const fs::path path = temporary / "the program";
    EXPECT_TRUE(write_file_atomically(path, "#!/bin/sh\n" + body));
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  static std::optional<int> run(const std::string& script,
                                const std::map<std::string, std::string>& variables = {}) {
    ToolCommand command;
    command.arguments = {"/usr/bin/env"};
    for (const auto& [name, value] : variables) command.arguments.push_back(name + "=" + value);
    command.arguments.insert(command.arguments.end(), {"SLURM_JOB_ID=7", "/bin/sh", "-s"});
    command.input = script;
    command.deadline = std::chrono::seconds(20);
    const Result<ToolOutcome> outcome = run_tool(command);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome->exit_status;
  }

  const TemporaryFolder temporary{"/tmp"};  // programs may not start from memory
  const Result<JobFolder> opened = JobFolder::open(temporary / "it's jobs");
  const JobFolder& folder = opened.value();
};

TEST_F(SlurmScript, EvaluatesTheKeyOfItsTask) {
  const std::string told = temporary / "told";
  const std::string script =
      evaluation_script(folder, program("echo \"$1 $2 $3\" >'" + told + "'\n"), "batch");
  ASSERT_TRUE(write_file_atomically(folder.batch("batch"), "first\nsecond\n"));
  EXPECT_EQ(run(script), 0);
  EXPECT_EQ(*read_file(told), "evaluate-job " + folder.path().string() + " first\n");
  EXPECT_EQ(run(script, {{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_JOB_ID", "7"}}), 0);
  EXPECT_EQ(*read_file(told), "evaluate-job " + folder.path().string() + " second\n");
  EXPECT_TRUE(folder.logs().empty()) << "a job that ended well leaves none";
}

TEST_F(SlurmScript, KeepsTheLogOfAProgramThatFails) {
  const std::string script = evaluation_script(folder, program("echo no GPU\nexit 3\n"), "batch");
  ASSERT_TRUE(write_file_atomically(folder.batch("batch"), "first\n"));
  EXPECT_EQ(run(script), 3);
  EXPECT_EQ(folder.logs(), std::set<std::string>{"batch.0"});
  EXPECT_EQ(*read_file(folder.log("batch.0")), "no GPU\n");
  EXPECT_FALSE(left_word_of_preemption(folder.logs(), "batch", 0));
}

TEST_F(SlurmScript, EndsWithTheStatusThatSaysWhatANodeLacks) {
  const std::string good = program("exit 0\n");
  const auto status = [&](const std::string& with) {
    return run(evaluation_script(folder, with, "batch"));
  };
  EXPECT_EQ(status("/nowhere/program"), no_program);
  const std::string script = probe_script(folder, good, "word");
  ASSERT_TRUE(write_file_atomically(folder.path() / "token", "another"));
  EXPECT_EQ(status(good), no_shared_folder);
  EXPECT_EQ(run(script), no_shared_folder);
}

TEST_F(SlurmScript, LeavesAWordWhereTheProgramRuns) {
  EXPECT_EQ(run(probe_script(folder, program("exit 1\n"), "word")), no_program);
  EXPECT_FALSE(folder.is_seen("word"));
  EXPECT_EQ(run(probe_script(folder, program("exit 0\n"), "word")), 0);
  EXPECT_TRUE(folder.is_seen("word"));
  EXPECT_FALSE(folder.is_seen("another"));
}

TEST(PreemptedJobs, AreToldByTheirLogs) {
  const std::set<std::string> logs{"batch.1", "batch.1.preempted", "batch.12"};
  EXPECT_TRUE(left_word_of_preemption(logs, "batch", 1));
  EXPECT_FALSE(left_word_of_preemption(logs, "batch", 12));
  EXPECT_FALSE(left_word_of_preemption(logs, "other", 1));
}

}  // namespace
}  // namespace rekernel
