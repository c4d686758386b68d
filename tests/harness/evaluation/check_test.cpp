#include "harness/evaluation/check.h"

#include <gtest/gtest.h>

#include <limits>

namespace rekernel {
namespace {

ErrorStats errors(double max_abs, double rms, double strict_ratio) {
  ErrorStats stats;
  stats.max_abs = max_abs;
  stats.rms = rms;
  stats.worst_strict_ratio = strict_ratio;
  return stats;
}

TEST(StrictShare, IsTheSmallerOfTheBoundAndTwiceTheLibrarysErrors) {
  const ErrorStats library = errors(1e-3, 1e-4, 8);
  EXPECT_DOUBLE_EQ(strict_share(errors(1e-3, 1e-4, 0.5), &library), 0.5);
  EXPECT_DOUBLE_EQ(strict_share(errors(1e-3, 1e-4, 7), &library), 0.5);
  EXPECT_DOUBLE_EQ(strict_share(errors(2e-3, 1e-4, 7), &library), 1.0);
  EXPECT_DOUBLE_EQ(strict_share(errors(1e-3, 4e-4, 7), &library), 2.0) << "rms decides";
  EXPECT_DOUBLE_EQ(strict_share(errors(1e-3, 1e-4, 7), nullptr), 7.0);
}

TEST(StrictShare, AnExactLibraryAllowsNoError) {
  const ErrorStats exact = errors(0, 0, 0);
  EXPECT_DOUBLE_EQ(strict_share(errors(1e-3, 1e-4, 7), &exact), 7.0);
  EXPECT_DOUBLE_EQ(strict_share(exact, &exact), 0.0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(strict_share(errors(nan, nan, nan), nullptr) <= 1.0);
}

Problem of_two_outputs() {
  Problem problem;
  for (const char* name : {"y", "index"}) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = {4, 8};
    tensor.role = Role::output;
    problem.tensors.push_back(tensor);
  }
  problem.tensors[1].dtype = DType::i64;
  problem.tensors[1].comparison = Comparison::equal;
  problem.tolerance = {1e-2, 1e-2, 1e-3, 1e-2};
  return problem;
}

TEST(JudgeValues, NamesTheOutputAndTheElement) {
  const Problem problem = of_two_outputs();
  ErrorStats stats;
  stats.failing = 2;
  stats.first_failing = 11;
  stats.first_value = 3;
  stats.first_truth = 5;
  const auto rejection = judge_values(stats, problem, problem.tensors[1], nullptr);
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->message, "2 of 32 elements are wrong; first index[1, 3] = 3, expected 5");
  EXPECT_EQ(rejection->check, "tolerance of an element");
  stats = errors(1e-3, 5e-3, 0);
  stats.truth_rms = 1;
  const auto size = judge_values(stats, problem, problem.tensors[0], nullptr);
  ASSERT_TRUE(size);
  EXPECT_EQ(size->message, "y: rms error 0.005 at rms(truth) 1: expected a ratio of at most 0.001");
  const StressCase stress{"far", {}};
  EXPECT_FALSE(judge_values(stats, problem, problem.tensors[0], &stress));
}

TEST(JudgeValues, ATruthOfZerosAsksForZeros) {
  const Problem problem = of_two_outputs();
  EXPECT_FALSE(judge_values(errors(0, 0, 0), problem, problem.tensors[0], nullptr));
  EXPECT_TRUE(judge_values(errors(1e-30, 1e-31, 0), problem, problem.tensors[0], nullptr));
}

TEST(Combined, HasTheSumsAndTheWorst) {
  const Tolerance tolerance{1e-2, 1e-2, 1e-3, 1e-2};
  ErrorStats near = errors(5, 1, 0.5);
  near.truth_rms = 1e6;
  near.worst_tolerance_ratio = 3;
  near.failing = 2;
  near.first_failing = 7;
  near.first_value = 1;
  ErrorStats far = errors(0.1, 0.01, 2);
  far.truth_rms = 1;
  far.worst_tolerance_ratio = 0.1;
  far.failing = 3;
  far.unwritten = 1;
  far.first_failing = 0;
  const ErrorStats all = combined({near, far}, tolerance);
  EXPECT_EQ(all.failing, 5);
  EXPECT_EQ(all.unwritten, 1);
  EXPECT_EQ(all.first_failing, 7);
  EXPECT_EQ(all.first_value, 1);
  EXPECT_EQ(all.worst_tolerance_ratio, 3);
  EXPECT_EQ(all.worst_strict_ratio, 2);
  EXPECT_EQ(all.max_abs, 0.1) << "beside its truth, the second is worse";
  EXPECT_EQ(all.rms, 0.01);
  EXPECT_EQ(all.truth_rms, 1);
}

}  // namespace
}  // namespace rekernel
