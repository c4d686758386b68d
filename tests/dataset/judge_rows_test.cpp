#include "harness/dataset/judge_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/dataset/dataset.h"
#include "harness/dataset/dataset_reader.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// Passes what it gets, until it has had enough.
class PassingLauncher : public EvaluationLauncher {
 public:
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions&) override {
    if (static_cast<int>(judged.size()) == enough)
      return not_evaluated(candidate, "no GPU any more");
    judged.push_back(candidate_sha256(candidate));
    EvaluationReport report = blank_report(candidate);
    report.evaluation = testing::passing_evaluation(candidate, 700000);
    return report;
  }
  std::vector<std::string> judged;
  int enough = 1000;
};

class JudgeRowsTest : public ::testing::Test {
 protected:
  /// A data set of one search. It takes the wheel that writes Parquet.
  void SetUp() override {
    testing::FakeModel model;
    for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r1.i2.b1", "r1.i2.b2"}) {
      model.replies[id] = testing::kernel_reply(id);
    }
    testing::FakeEvaluator evaluator;
    evaluator.gpu_of = [](const std::string&) { return testing::FakeGpu(); };
    testing::run_on_file(folder_ / "t.jsonl", testing::small_header(1, 2, 2), model, evaluator);
    for (const char* part : {"generated", "tests/adversarial", "tests/mutants", "tests/honest"}) {
      fs::create_directories(folder_ / part);
    }
    DatasetSources sources;
    sources.root = folder_.path();
    sources.trajectories = {folder_ / "t.jsonl"};
    const Result<MakeUp> made = make_dataset(sources, folder_ / "data");
    if (!made) GTEST_SKIP() << made.error().message;
    asked_.dataset = folder_ / "data";
    asked_.record = folder_ / "results/h200/judged_again.jsonl";
    asked_.rows = 3;
    asked_.device_name = "NVIDIA H200";
  }
  TemporaryFolder folder_;
  JudgeRows asked_;
};

TEST_F(JudgeRowsTest, GoesOnWhereItWasStopped) {
  const auto listed = list_dataset(asked_.dataset);
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->size(), 4u);
  PassingLauncher first;
  first.enough = 2;
  const auto stopped = judge_rows(asked_, first);
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("no GPU any more"), std::string::npos);
  PassingLauncher second;
  const auto judged = judge_rows(asked_, second);
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_EQ(first.judged.size(), 2u);
  EXPECT_EQ(second.judged.size(), 1u);
  ASSERT_EQ(judged->rows.size(), 3u);
  std::set<std::string> ids;
  for (const JudgedAgain& row : judged->rows) {
    ids.insert(row.id);
    EXPECT_EQ(row.status_now, "passed");
    EXPECT_EQ(row.median_ns_now, 700000);
  }
  EXPECT_EQ(ids.size(), 3u);
  PassingLauncher third;
  EXPECT_TRUE(judge_rows(asked_, third));
  EXPECT_TRUE(third.judged.empty());

  asked_.seed = 2;
  const auto other = judge_rows(asked_, third);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another draw"), std::string::npos);
}

}  // namespace
}  // namespace rekernel
