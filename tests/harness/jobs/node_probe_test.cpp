#include "harness/jobs/node_probe.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/harness/jobs/fake_slurm.h"

namespace rekernel {
namespace {

using std::chrono::milliseconds;
using testing::FakeSlurm;

constexpr SlurmTimes short_times{milliseconds(10), milliseconds(20), std::chrono::seconds(20),
                                 milliseconds(10), milliseconds(20), milliseconds(50)};

class NodeProbeTest : public ::testing::Test {
 protected:
  NodeProbeTest() {
    options.program = temporary / "program";
    options.say = [this](const std::string& text) { said += text + "\n"; };
    EXPECT_TRUE(write_file_atomically(options.program, "#!/bin/sh\n"));
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  }

  /// The job runs at once, or its script is only read.
  void takes_jobs(bool run) {
    slurm.says("sbatch",
               std::string(run ? "SLURM_JOB_ID=7 sh -s\n" : "cat >/dev/null\n") + "echo 7\n");
  }
  void lists(const std::string& state) {
    slurm.says("squeue", "echo '7|N/A|" + state + "|n1|name||0|'\n");
  }
  /// "seen", "unknown", or why the nodes are no place for jobs.
  std::string probed(milliseconds patience = std::chrono::seconds(20)) {
    const Result<bool> seen = probe.run(patience, [this](milliseconds) { return !interrupted; });
    return seen ? (*seen ? "seen" : "unknown") : seen.error().message;
  }

  const TemporaryFolder temporary{"/tmp"};  // programs may not start from memory
  const Result<JobFolder> opened = JobFolder::open(temporary / "jobs");
  FakeSlurm slurm;
  const SlurmClient client = slurm.client();
  JobOptions options;
  std::string said;
  bool interrupted = false;
  NodeProbe probe{opened.value(), client, options, short_times};
};

TEST_F(NodeProbeTest, AsksOnceWhetherNodesSeeTheFolder) {
  takes_jobs(true);
  EXPECT_EQ(probed(), "seen");
  EXPECT_NE(slurm.asked().find("--time=1"), std::string::npos) << "a job of a minute";
  EXPECT_EQ(probe.job(), "");
  const std::string asked = slurm.asked();
  EXPECT_EQ(probed(), "seen");
  EXPECT_EQ(slurm.asked(), asked);
}

TEST_F(NodeProbeTest, NamesWhatTheNodeLacks) {
  takes_jobs(false);
  lists("FAILED|" + std::to_string(no_program << 8));
  const std::string why = probed();
  EXPECT_TRUE(why.starts_with("--launcher slurm: job 7 on n1 ")) << why;
  lists("COMPLETED|0");
  EXPECT_TRUE(probed().starts_with("--launcher slurm: job 7")) << "its word never came";
}

TEST_F(NodeProbeTest, LeavesAFailureThatTellsNothingOfTheNodes) {
  takes_jobs(false);
  lists("NODE_FAIL|0");
  EXPECT_EQ(probed(), "unknown");
  EXPECT_NE(said.find("is not known yet: "), std::string::npos) << said;
}

TEST_F(NodeProbeTest, DoesNotWaitForALongQueue) {
  takes_jobs(false);
  lists("PENDING|0");
  EXPECT_EQ(probed(milliseconds(50)), "unknown");
  EXPECT_NE(slurm.asked().find("scancel --quiet 7"), std::string::npos) << slurm.asked();
  EXPECT_NE(said.find("its job is still in the queue; the first candidates will tell"),
            std::string::npos)
      << said;
}

TEST_F(NodeProbeTest, LeavesItsJobToWhoInterruptsIt) {
  takes_jobs(false);
  lists("RUNNING|0");
  interrupted = true;
  EXPECT_EQ(probed(), "interrupted");
  EXPECT_EQ(probe.job(), "7");
}

TEST_F(NodeProbeTest, TellsAFullQueueFromARefusal) {
  slurm.says("sbatch", "echo 'AssocMaxSubmitJobLimit' >&2; exit 1\n");
  EXPECT_EQ(probed(), "unknown");
  EXPECT_NE(said.find("since Slurm accepts no jobs now: AssocMaxSubmitJobLimit"), std::string::npos)
      << said;
  slurm.says("sbatch", "echo 'Invalid partition' >&2; exit 1\n");
  EXPECT_TRUE(
      probed().starts_with("--launcher slurm: Slurm rejects such a job: Invalid partition"));
}

}  // namespace
}  // namespace rekernel
