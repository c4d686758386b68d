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
  /// What has another digest than before: "judge", "cudnn_fp32", …
  std::set<std::string> changed() const {
    const HarnessDigests after = now();
    std::set<std::string> names;
    if (after.judge != before_.judge) names.insert("judge");
    for (const auto& [id, digest] : after.references) {
      if (before_.references.at(id) != digest) names.insert(id);
    }
    return names;
  }

  using Names = std::set<std::string>;
  TemporaryFolder folder_;
  HarnessDigests before_;
};

TEST_F(JudgingSources, CommentsLayoutAndPlacesChangeNothing) {
  EXPECT_EQ(before_.judge.size(), 16u);
  append("ops/definition/scalar.cpp", "\n// A remark.\n\n#include <array>\n");
  append("reference/pytorch.py", "\n# A remark.\n");
  append("harness/evaluation/trial.cpp", "/* a remark */\n");
  EXPECT_EQ(changed(), Names{});
  fs::rename(folder_ / "harness/base/time_left.cpp", folder_ / "harness/gpu/time_left_too.cpp");
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, TheLanguageOfProblemsAndItsReaderJudgeEveryRow) {
  for (const char* file : {"ops/definition/interpreter.cpp", "harness/problems/problem_file.cpp",
                           "harness/problems/tolerance_class.cpp"}) {
    append(file, "int more;\n");
    EXPECT_EQ(changed(), Names{"judge"}) << file;
    before_ = now();
  }
}

TEST_F(JudgingSources, AReferenceCountsForItself) {
  append("reference/cudnn_layernorm.cpp", "int more;\n");
  append("reference/pytorch.py", "more = 1\n");
  EXPECT_EQ(changed(),
            (Names{"cudnn_layernorm", "pytorch_eager", "pytorch_compile", "pytorch_eager_fp32"}));
}

TEST_F(JudgingSources, ANewLineInAListChangesNothing) {
  for (const char* list : {"harness/problems/catalog.cpp", "reference/catalog.cpp",
                           "reference/library_references.h", "harness/base/judging_sources.cpp"}) {
    append(list, "int more;\n");
  }
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, WhatIsSharedOrClaimedByNobodyJudgesEveryRow) {
  append("ops/gemm.cpp", "int more;\n");
  EXPECT_EQ(changed(), Names{"judge"});
  before_ = now();
  append("reference/another.cpp", "int more;\n");
  EXPECT_EQ(changed(), Names{"judge"});
  before_ = now();
  append("harness/device/notes.md", "no source");
  EXPECT_EQ(changed(), Names{});
}

TEST_F(JudgingSources, WhatIsMissingIsNamed) {
  fs::remove(folder_ / "reference/cublas.cpp");
  const Result<HarnessDigests> digests = harness_digests_of(folder_.path());
  ASSERT_FALSE(digests.ok());
  EXPECT_NE(digests.error().message.find("reference/cublas.cpp: not there"), std::string::npos)
      << digests.error().message;
  const Result<HarnessDigests> nowhere = harness_digests_of("/nowhere");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("/nowhere/ops: cannot be read"), std::string::npos)
      << nowhere.error().message;
}

using Digests = std::map<std::string, std::string>;

Digests digests_of_problems(const fs::path& root) {
  const Result<Digests> digests = problem_digests_of(root);
  EXPECT_TRUE(digests.ok()) << digests.error().message;
  return digests ? *digests : Digests{};
}

TEST(ProblemDigests, EveryProblemOfTheCatalogHasItsOwn) {
  const Digests digests = digests_of_problems(REKERNEL_SOURCE_DIR);
  EXPECT_GE(digests.size(), catalog().size());
  for (const Problem& problem : catalog()) {
    ASSERT_TRUE(digests.contains(problem.id));
    EXPECT_EQ(digests.at(problem.id), problem_digest(problem.text)) << problem.id;
  }
}

TEST(ProblemDigests, AFileMoreChangesNoOthers) {
  const TemporaryFolder folder;
  const auto write = [&](const char* group, const char* id, const char* text) {
    fs::create_directories(folder / "ops/problems" / group);
    std::ofstream(folder / "ops/problems" / group / (std::string(id) + ".json")) << text;
  };
  write("one", "first", R"({"id": "first"})");
  const Digests before = digests_of_problems(folder.path());
  EXPECT_EQ(before.size(), 1u);
  write("two", "second", R"({"id": "second"})");
  std::ofstream(folder / "ops/problems/README.md") << "no problem";
  const Digests after = digests_of_problems(folder.path());
  EXPECT_EQ(after.size(), 2u);
  EXPECT_EQ(after.at("first"), before.at("first"));
  EXPECT_NE(after.at("first"), after.at("second"));
}

TEST(ProblemDigests, TitleSourceAndLayoutDoNotCount) {
  const std::string digest =
      problem_digest(R"({"id": "a", "title": "A", "source": {"number": 1}, "axes": {"n": 2}})");
  EXPECT_EQ(digest.size(), 16u);
  EXPECT_EQ(problem_digest("{\n  \"id\": \"a\",\n  \"axes\": {\"n\": 2}\n}\n"), digest);
  EXPECT_EQ(problem_digest(R"({"id": "a", "axes": {"n": 2}, "title": "Another"})"), digest);
  EXPECT_NE(problem_digest(R"({"id": "a", "axes": {"n": 3}})"), digest);
  EXPECT_NE(problem_digest(R"({"id": "a", "axes": {"n": 2, "title": 1}})"), digest);
}

TEST(ProblemDigests, WithoutProblemsThereIsAnError) {
  const Result<Digests> nowhere = problem_digests_of("/nowhere");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("/nowhere/ops/problems: cannot be read"),
            std::string::npos);
}

}  // namespace
}  // namespace rekernel
