#include "harness/records/published.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary.h"

namespace rekernel {
namespace {

TEST(Published, TheProjectsRecordHasFiguresAndWhatWasSaidOfTheSearches) {
  const Result<Published> published = load_published_record(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(published->device, "NVIDIA L40S");
  EXPECT_EQ(published->figures.at("conv2d").percent_of_pytorch_eager, 179.9);
  EXPECT_EQ(published->figures.at("conv2d_relu_maxpool").percent_of_torch_compile, 189.0);
  EXPECT_EQ(published->figures.at("matmul_fp16").note, "size not published");
  ASSERT_TRUE(published->searches);
  EXPECT_EQ(published->searches->rounds, 5);
  EXPECT_EQ(published->searches->best_found_in_rounds, (std::vector<int>{4, 5}));
}

class PublishedFile : public ::testing::Test {
 protected:
  Result<Published> load(const std::string& content) const {
    std::filesystem::create_directories(folder_ / "results");
    std::ofstream(folder_ / "results/published.json") << content;
    return load_published_record(folder_.path());
  }

  TemporaryFolder folder_;
};

TEST_F(PublishedFile, NeedNotSayAnythingOfSearches) {
  const Result<Published> published = load(
      R"({"schema": 1, "source": {"authors": "A", "title": "T", "publisher": "P", "date": "D"},
          "device": "GPU", "meaning": "M", "problems": {}, "new": {}})");
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_FALSE(published->searches);
}

TEST_F(PublishedFile, AMistakeIsNamedWithItsPlace) {
  const Result<Published> published = load(
      R"({"schema": 1, "source": {"authors": "A", "title": "T", "publisher": "P", "date": "D"},
          "device": "GPU", "meaning": "M", "problems": {"softmax":
          {"percent_of_pytorch_eager": "many"}}})");
  ASSERT_FALSE(published.ok());
  EXPECT_NE(published.error().message.find("published.json"), std::string::npos);
  EXPECT_NE(published.error().message.find("softmax.percent_of_pytorch_eager"), std::string::npos)
      << published.error().message;
}

}  // namespace
}  // namespace rekernel
