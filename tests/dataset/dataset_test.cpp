#include "harness/dataset/dataset.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

class DatasetTest : public ::testing::Test {
 protected:
  /// Why no data set is made of a search with this reply.
  std::string error_with(const std::string& reply) {
    testing::FakeModel model;
    model.replies["r1.i1.b1"] = reply;
    testing::FakeEvaluator evaluator;
    testing::run_on_file(folder_ / "t.jsonl", testing::small_header(1, 1, 1), model, evaluator);
    DatasetSources sources;
    sources.root = folder_.path();
    sources.trajectories = {folder_ / "t.jsonl"};
    const Result<MakeUp> made = make_dataset(sources, folder_ / "data");
    EXPECT_FALSE(fs::exists(folder_ / "data"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
    return made ? "" : made.error().message;
  }
  TemporaryFolder folder_;
};

TEST_F(DatasetTest, RefusesAReplyThatIsNotUtf8) {
  const std::string error = error_with("I would \xff\xfe rather not.");
  EXPECT_NE(error.find("messages fake/r1.i1.b1"), std::string::npos) << error;
  EXPECT_NE(error.find("byte 8 is not UTF-8"), std::string::npos) << error;
}

TEST_F(DatasetTest, RefusesASecret) {
  const std::string error = error_with("hf_" + std::string("aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF"));
  EXPECT_NE(error.find("Hugging Face"), std::string::npos) << error;
}

TEST(DatasetFolder, IsNewOrEmpty) {
  TemporaryFolder folder;
  EXPECT_TRUE(check_dataset_folder(folder.path()));
  EXPECT_TRUE(check_dataset_folder(folder / "new"));
  testing::write_text(folder / "file", "");
  EXPECT_FALSE(check_dataset_folder(folder.path()));
  EXPECT_FALSE(check_dataset_folder(folder / "file"));
}

}  // namespace
}  // namespace rekernel
