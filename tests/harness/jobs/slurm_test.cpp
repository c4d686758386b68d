#include "harness/jobs/slurm.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rekernel {
namespace {

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

}  // namespace
}  // namespace rekernel
