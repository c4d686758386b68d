// Which sizes a candidate in axes is evaluated at after its verdict, and what comes of it: with a
// stand-in for the evaluations.

#include "harness/evaluation/any_size.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <filesystem>

#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"
#include "harness/problems/sizes.h"

namespace rekernel {
namespace {

using Mode = EvaluateOptions::Mode;

class AnySize : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<Candidate> loaded =
        load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/in_axes/slow_softmax");
    ASSERT_TRUE(loaded) << loaded.error().message;
    candidate = *std::move(loaded);
    options.seed = 7;
    options.references = {"cudnn_softmax"};
    options.external_references = {"pytorch_eager"};
    own.evaluation.status = Status::passed;
    own.evaluation.badges = {Badge::strict};
  }

  void judge() {
    const SizedEvaluator evaluator{
        [this](const Candidate& sized, const EvaluateOptions& asked) {
          evaluated.push_back(sized.sizes);
          modes.push_back(asked.mode);
          EXPECT_TRUE(asked.references.empty() && asked.external_references.empty());
          EXPECT_FALSE(asked.stress || asked.other_sizes);
          EvaluationReport report;
          report.evaluation.status = Status::passed;
          report.evaluation.errors = ErrorStats{};
          report.evaluation.errors->worst_tolerance_ratio = 0.25;
          if (asked.takes_times()) report.evaluation.timing = Timing{{9000}, 9000, 9000, 9000};
          spoil(report, evaluated.size());
          return report;
        },
        [this](const Candidate&) { ++compiled; }};
    judge_at_other_sizes(candidate, options, evaluator, own.evaluation);
  }

  const std::vector<SizeResult>& results() const { return own.evaluation.evidence->other_sizes; }

  Candidate candidate;
  EvaluateOptions options;
  EvaluationReport own;
  std::function<void(EvaluationReport&, std::size_t)> spoil = [](EvaluationReport&, std::size_t) {};
  std::vector<Sizes> evaluated;
  std::vector<Mode> modes;
  std::atomic<int> compiled = 0;
};

TEST_F(AnySize, IsAskedOfPlansInAxes) {
  EXPECT_TRUE(may_ask_for_other_sizes(candidate, options));
  for (const Mode mode : {Mode::errors, Mode::noise, Mode::blinding, Mode::sizes, Mode::once}) {
    EvaluateOptions other = options;
    other.mode = mode;
    EXPECT_FALSE(may_ask_for_other_sizes(candidate, other));
  }
  EvaluateOptions shared = options;
  shared.shared_gpu = true;
  EXPECT_FALSE(may_ask_for_other_sizes(candidate, shared));
  EvaluateOptions without = options;
  without.other_sizes = false;
  EXPECT_FALSE(may_ask_for_other_sizes(candidate, without));
  Candidate of_numbers = candidate;
  of_numbers.written.clear();
  EXPECT_FALSE(may_ask_for_other_sizes(of_numbers, options));
}

TEST_F(AnySize, IsGivenWhereAllIsRight) {
  judge();
  EXPECT_TRUE(own.evaluation.badges.has(Badge::any_size));
  EXPECT_TRUE(own.evaluation.badges.has(Badge::strict));
  EXPECT_EQ(own.evaluation.badge_notes, "");
  ASSERT_EQ(results().size(), judged_sizes + 3);
  EXPECT_EQ(compiled, static_cast<int>(judged_sizes) + 3);
  const Problem& softmax = *find_problem("softmax");
  std::vector<Sizes> expected;
  for (const Problem& one : drawn_instances(softmax, 7)) expected.push_back(sizes_of(one));
  for (const Problem& one : fixed_instances(softmax)) expected.push_back(sizes_of(one));
  EXPECT_EQ(evaluated, expected);
  for (std::size_t i = 0; i < results().size(); ++i) {
    EXPECT_EQ(results()[i].sizes, expected[i]);
    EXPECT_EQ(results()[i].tolerance_share, 0.25);
    const bool timed = i >= judged_sizes;
    EXPECT_EQ(modes[i], timed ? Mode::sizes : Mode::errors);
    EXPECT_EQ(results()[i].median_ns, timed ? 9000 : 0);
  }
  // As it is recorded.
  const boost::json::value json = to_json(own.evaluation);
  const Result<Evaluation> again = evaluation_from_json(JsonReader("evaluation", json));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->evidence->other_sizes.size(), results().size());
  EXPECT_EQ(again->evidence->other_sizes.back().sizes, results().back().sizes);
  EXPECT_EQ(again->evidence->other_sizes.back().median_ns, 9000);
  EXPECT_EQ(again->evidence->other_sizes.back().tolerance_share, 0.25);
  EXPECT_TRUE(again->badges.has(Badge::any_size));
}

TEST_F(AnySize, IsLostWithTheFirstWrongResultAndNothingElseIs) {
  spoil = [](EvaluationReport& report, std::size_t number) {
    if (number != 3) return;
    report.evaluation.status = Status::wrong_result;
    report.evaluation.message = "7 of 9 elements are outside of the tolerance";
    report.evaluation.errors->worst_tolerance_ratio = 41;
  };
  judge();
  EXPECT_FALSE(own.evaluation.badges.has(Badge::any_size));
  EXPECT_TRUE(own.evaluation.badges.has(Badge::strict));
  EXPECT_EQ(own.evaluation.status, Status::passed);
  ASSERT_EQ(results().size(), 3u);
  EXPECT_EQ(results().back().status, Status::wrong_result);
  EXPECT_EQ(results().back().tolerance_share, 41);
  EXPECT_EQ(own.evaluation.badge_notes, "any_size: wrong_result at " +
                                            sizes_text(evaluated.back()) +
                                            ": 7 of 9 elements are outside of the tolerance");
}

TEST_F(AnySize, IsNotGivenWhereTheMachineCouldNotJudge) {
  own.evaluation.badge_notes = "robust: not tried";
  spoil = [](EvaluationReport& report, std::size_t) { report.failure = "no memory"; };
  judge();
  EXPECT_FALSE(own.evaluation.badges.has(Badge::any_size));
  EXPECT_EQ(own.evaluation.badge_notes, "robust: not tried; any_size: not judged at " +
                                            sizes_text(evaluated.front()) + ": no memory");
  EXPECT_TRUE(results().empty());
}

TEST_F(AnySize, IsLostByAPlanThatSaysNothingValidThere) {
  std::string plan = candidate_json(candidate);
  const std::string grid = "ceil_div(rows * columns, THREADS)";
  plan.replace(plan.find(grid), grid.size(), "rows * columns / 65536");
  candidate = *parse_candidate(plan, candidate.program.source, "kernel.json");
  judge();
  EXPECT_FALSE(own.evaluation.badges.has(Badge::any_size));
  EXPECT_EQ(results().back().status, Status::invalid_plan);
  EXPECT_NE(own.evaluation.badge_notes.find("any_size: invalid_plan at "), std::string::npos);
  EXPECT_NE(own.evaluation.badge_notes.find("launches[2].grid[0]: expected an integer from 1"),
            std::string::npos)
      << own.evaluation.badge_notes;
}

}  // namespace
}  // namespace rekernel
