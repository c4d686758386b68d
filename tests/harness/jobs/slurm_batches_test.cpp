#include "harness/jobs/slurm_batches.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

using Keys = std::vector<std::string>;

class Batches : public ::testing::Test {
 protected:
  const TemporaryFolder temporary;
  const Result<JobFolder> opened = JobFolder::open(temporary / "jobs");
  const JobFolder& folder = opened.value();
  SlurmBatches batches{folder};
};

TEST_F(Batches, AreFoundAgainByTheirManifests) {
  SlurmBatch& first = batches.add({"a", "b"});
  ASSERT_TRUE(batches.write_manifest(first));
  EXPECT_EQ(*read_file(folder.batch(first.name)), "a\nb\n");
  SlurmBatch& second = batches.add({"a", "b"});
  EXPECT_NE(second.name, first.name) << "jobs are told apart by their names";

  SlurmBatches later(folder);
  later.read_manifests();
  ASSERT_EQ(later.names(), Keys{first.name}) << "the second was never submitted";
  EXPECT_EQ(later.begin()->keys, (Keys{"a", "b"}));
  EXPECT_EQ(later.begin()->job, "");
}

TEST_F(Batches, TakeTheirManifestsAlong) {
  SlurmBatch& open = batches.add({"a"});
  open.open = 1;
  SlurmBatch& closed = batches.add({"b"});
  SlurmBatch& removed = batches.add({"c"});
  removed.open = 1;
  for (const SlurmBatch& batch : batches) ASSERT_TRUE(batches.write_manifest(batch));
  const auto gone = {folder.batch(closed.name), folder.batch(removed.name)};
  batches.remove(removed);
  batches.remove_closed();
  EXPECT_EQ(batches.names(), Keys{open.name});
  EXPECT_TRUE(std::filesystem::exists(folder.batch(open.name)));
  for (const auto& manifest : gone) EXPECT_FALSE(std::filesystem::exists(manifest)) << manifest;
}

}  // namespace
}  // namespace rekernel
