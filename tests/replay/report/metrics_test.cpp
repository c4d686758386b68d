#include "replay/report/metrics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rekernel {
namespace {

TEST(PassAtK, IsTheShareForOneTry) {
  EXPECT_DOUBLE_EQ(pass_at_k(10, 3, 1), 0.3);
  EXPECT_DOUBLE_EQ(pass_at_k(10, 0, 1), 0.0);
  EXPECT_DOUBLE_EQ(pass_at_k(10, 10, 1), 1.0);
}

TEST(PassAtK, CountsDrawsWithoutReplacement) {
  // 1 − C(3,3) ÷ C(5,3) = 1 − 1/10.
  EXPECT_DOUBLE_EQ(pass_at_k(5, 2, 3), 0.9);
  // 1 − C(7,2) ÷ C(10,2) = 1 − 21/45.
  EXPECT_DOUBLE_EQ(pass_at_k(10, 3, 2), 8.0 / 15.0);
  EXPECT_DOUBLE_EQ(pass_at_k(5, 3, 3), 1.0);  // two wrong ones cannot fill three tries
}

TEST(PassAtK, RefusesImpossibleNumbers) {
  EXPECT_THROW(pass_at_k(5, 2, 0), std::invalid_argument);
  EXPECT_THROW(pass_at_k(5, 2, 6), std::invalid_argument);
  EXPECT_THROW(pass_at_k(5, 6, 1), std::invalid_argument);
}

TEST(SpeedupAtK, IsTheMeanForOneTryAndTheBestForAll) {
  EXPECT_DOUBLE_EQ(speedup_at_k({1.0, 0.0, 2.0, 3.0}, 1), 1.5);
  EXPECT_DOUBLE_EQ(speedup_at_k({1.0, 0.0, 2.0, 3.0}, 4), 3.0);
}

TEST(SpeedupAtK, IsTheExpectedBestOfADraw) {
  // Pairs of {0,1,2}: best 1, 2, 2.
  EXPECT_DOUBLE_EQ(speedup_at_k({2.0, 0.0, 1.0}, 2), 5.0 / 3.0);
  // Pairs of {0,1,2,3}: 1, 2, 3, 2, 3, 3.
  EXPECT_DOUBLE_EQ(speedup_at_k({3.0, 1.0, 2.0, 0.0}, 2), 14.0 / 6.0);
  EXPECT_THROW(speedup_at_k({1.0}, 2), std::invalid_argument);
}

TEST(FastP, CountsTasksThatAreCorrectAndFaster) {
  const TaskResult tasks[] = {{true, 2.0}, {true, 1.0}, {false, 3.0}, {true, 0.5}};
  EXPECT_DOUBLE_EQ(fast_p(tasks, 0.0), 0.75);
  EXPECT_DOUBLE_EQ(fast_p(tasks, 1.0), 0.25);  // strictly faster
  EXPECT_DOUBLE_EQ(fast_p(tasks, 2.0), 0.0);
  EXPECT_DOUBLE_EQ(fast_p({}, 0.0), 0.0);
}

}  // namespace
}  // namespace rekernel
