// What is asked of Slurm's commands, and what is made of their answers, with scripts in their
// place.

#include "harness/jobs/slurm_client.h"

#include <gtest/gtest.h>

#include "tests/harness/jobs/fake_slurm.h"

namespace rekernel {
namespace {

using testing::FakeSlurm;

std::string check_of(const FakeSlurm& slurm, const SlurmJobOptions& options = {}) {
  const Result<Ok> checked = slurm.client(options).check("true");
  return checked ? "good" : checked.error().message;
}

TEST(SlurmClient, ChecksTheCommandsAndATrialJob) {
  FakeSlurm slurm;
  EXPECT_EQ(check_of(slurm), "good");
  EXPECT_NE(slurm.asked().find("sbatch --test-only --parsable"), std::string::npos)
      << slurm.asked();
  slurm.says("scancel", "echo 'wrong library' >&2; exit 1\n");
  EXPECT_EQ(check_of(slurm),
            "--launcher slurm: scancel does not run: wrong library: expected Slurm's commands, as "
            "a login node has them");
  slurm.says("squeue", "[ \"$1\" = --version ] || echo nonsense\n");
  slurm.says("scancel", "");
  EXPECT_TRUE(check_of(slurm).starts_with("--launcher slurm: squeue: ")) << check_of(slurm);
}

TEST(SlurmClient, TellsWhatSlurmWillNeverTake) {
  FakeSlurm slurm;
  slurm.says("sbatch", "[ \"$1\" = --version ] || { echo 'Invalid account' >&2; exit 1; }\n");
  EXPECT_EQ(check_of(slurm, {"p", "a", "", "30", {"--mem=1G"}}),
            "--launcher slurm: Slurm rejects such a job: Invalid account (one GPU, --time 30, "
            "--partition p, --account a, --mem=1G)");
  slurm.says("sbatch",
             "[ \"$1\" = --version ] || { echo 'AssocMaxSubmitJobLimit' >&2; exit 1; }\n");
  EXPECT_EQ(check_of(slurm), "good") << "a full queue is waited for";
}

TEST(SlurmClient, SubmitsAScriptAndKnowsItsJob) {
  FakeSlurm slurm;
  const TemporaryFolder folder;
  slurm.says("sbatch", "cat >'" + (folder / "given").string() + "'\necho '123;cluster'\n");
  const SlurmClient client = slurm.client();
  const auto job = client.submit(client.options(), "name", 3, {"n1"}, "the script");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(*job, "123");
  EXPECT_EQ(*read_file(folder / "given"), "the script");
  EXPECT_NE(slurm.asked().find("--array=0-2"), std::string::npos);
  slurm.says("sbatch", "echo 'Socket timed out' >&2; exit 1\n");
  EXPECT_EQ(client.submit(client.options(), "name", 1, {}, "").error().message, "Socket timed out");
}

TEST(SlurmClient, ListsAndCancels) {
  FakeSlurm slurm;
  slurm.says("squeue", "echo '12|N/A|RUNNING|0|n1|name||0|'\n");
  const auto tasks = slurm.client().list({"name", "other"});
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ(tasks->front().node, "n1");
  EXPECT_TRUE(slurm.client().cancel({"12", "13"}));
  EXPECT_NE(slurm.asked().find("scancel --quiet 12 13\n"), std::string::npos) << slurm.asked();
}

}  // namespace
}  // namespace rekernel
