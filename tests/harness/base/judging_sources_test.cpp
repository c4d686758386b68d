#include "harness/base/judging_sources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// A copy of the sources that judge.
class JudgingSources : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path root = REKERNEL_SOURCE_DIR;
    const Result<std::vector<fs::path>> sources = judging_sources(root);
    ASSERT_TRUE(sources.ok()) << sources.error().message;
    for (const fs::path& source : *sources) {
      const fs::path copy = folder_ / fs::relative(source, root);
      if (fs::is_directory(source)) {
        fs::create_directories(copy);
      } else {
        fs::copy_file(source, copy);
      }
    }
    before_ = now();
  }
  HarnessDigests now() const {
    const Result<HarnessDigests> digests = harness_digests_of(folder_.path());
    EXPECT_TRUE(digests.ok()) << digests.error().message;
    return digests ? *digests : HarnessDigests{};
  }
  void append(const char* file, const char* text) const {
    std::ofstream(folder_ / file, std::ios::app) << text;
  }
  /// What has another digest than before: "judge", "softmax", …
  std::set<std::string> changed() const {
    const HarnessDigests after = now();
    std::set<std::string> names;
    if (after.judge != before_.judge) names.insert("judge");
    for (const auto& [id, digest] : after.problems) {
      if (before_.problems.at(id) != digest) names.insert(id);
    }
    for (const auto& [id, digest] : after.references) {
      if (before_.references.at(id) != digest) names.insert(id);
    }
    return names;
  }

  using Names = std::set<std::string>;
  TemporaryFolder folder_;
  HarnessDigests before_;
};

TEST_F(JudgingSources, EveryProblemOfTheCatalogHasSourcesOfItsOwn) {
  EXPECT_EQ(before_.judge.size(), 16u);
  EXPECT_EQ(before_.problems.size(), catalog().size());
  for (const Problem& problem : catalog()) EXPECT_TRUE(before_.problems.contains(problem.id));
}

TEST_F(JudgingSources, CommentsLayoutAndPlacesChangeNothing) {
  append("ops/softmax.cpp", "\n// A remark.\n\n#include <array>\n");
  append("reference/pytorch.py", "\n# A remark.\n");
  append("harness/evaluation/trial.cpp", "/* a remark */\n");
  EXPECT_EQ(changed(), Names{});
  fs::rename(folder_ / "harness/base/time_left.cpp", folder_ / "harness/gpu/time_left_too.cpp");
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, AChangeCountsForWhatItDecidesAlone) {
  append("ops/softmax.cpp", "int more;\n");
  EXPECT_EQ(changed(), Names{"softmax"});
  append("ops/convolution.cpp", "int more;\n");
  EXPECT_EQ(changed(), (Names{"softmax", "conv2d", "conv2d_relu_maxpool"}));
}

TEST_F(JudgingSources, AReferenceCountsForItself) {
  append("reference/cudnn_layernorm.cpp", "int more;\n");
  append("reference/pytorch.py", "more = 1\n");
  EXPECT_EQ(changed(),
            (Names{"cudnn_layernorm", "pytorch_eager", "pytorch_compile", "pytorch_eager_fp32"}));
}

TEST_F(JudgingSources, ANewLineInAListChangesNothing) {
  for (const char* list : {"ops/catalog.cpp", "ops/operators.h", "reference/catalog.cpp",
                           "reference/library_references.h", "harness/base/judging_sources.cpp"}) {
    append(list, "int more;\n");
  }
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, WhatIsSharedOrClaimedByNobodyJudgesEveryRow) {
  append("ops/oracle.cpp", "int more;\n");
  EXPECT_EQ(changed(), Names{"judge"});
  before_ = now();
  append("reference/another.cpp", "int more;\n");
  EXPECT_EQ(changed(), Names{"judge"});
  before_ = now();
  append("harness/device/notes.md", "no source");
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, WhatIsMissingIsNamed) {
  fs::remove(folder_ / "ops/softmax.cpp");
  const Result<HarnessDigests> digests = harness_digests_of(folder_.path());
  ASSERT_FALSE(digests.ok());
  EXPECT_NE(digests.error().message.find("ops/softmax.cpp: not there"), std::string::npos)
      << digests.error().message;
  const Result<HarnessDigests> nowhere = harness_digests_of("/nowhere");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("/nowhere/ops: cannot be read"), std::string::npos)
      << nowhere.error().message;
}

}  // namespace
}  // namespace rekernel
