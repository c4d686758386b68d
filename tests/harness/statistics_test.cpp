#include "harness/statistics.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Statistics, QuantilesInterpolateBetweenOrderStatistics) {
  const std::vector<std::int64_t> samples{40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(quantile(samples, 0.0), 10.0);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.5), 25.0);
  EXPECT_DOUBLE_EQ(quantile(samples, 1.0), 40.0);
  EXPECT_DOUBLE_EQ(quantile(std::vector<std::int64_t>{7}, 0.5), 7.0);
}

TEST(Statistics, SummaryKeepsTheSamplesInTheirOrder) {
  const Timing timing = summarise({500, 100, 300, 200, 400});
  EXPECT_EQ(timing.median_ns, 300);
  EXPECT_EQ(timing.low_ns, 200);
  EXPECT_EQ(timing.high_ns, 400);
  EXPECT_EQ(timing.samples_ns, (std::vector<std::int64_t>{500, 100, 300, 200, 400}));
}

TEST(Statistics, PercentOfReferenceIsReferenceOverKernel) {
  const std::vector<std::int64_t> reference(20, 3000);
  const std::vector<std::int64_t> kernel(20, 1000);
  const Percent percent = percent_of_reference(reference, kernel);
  EXPECT_DOUBLE_EQ(percent.value, 300.0);
  EXPECT_DOUBLE_EQ(percent.low, 300.0);
  EXPECT_DOUBLE_EQ(percent.high, 300.0);
}

TEST(Statistics, IntervalHoldsTheValueAndRepeatsExactly) {
  std::vector<std::int64_t> reference;
  std::vector<std::int64_t> kernel;
  for (int i = 0; i < 60; ++i) {
    reference.push_back(1000 + 37 * i % 50);
    kernel.push_back(1000 + 91 * i % 60);
  }
  const Percent first = percent_of_reference(reference, kernel);
  const Percent second = percent_of_reference(reference, kernel);
  EXPECT_LT(first.low, first.value);
  EXPECT_GT(first.high, first.value);
  EXPECT_LT(first.high - first.low, 5.0);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

}  // namespace
}  // namespace rekernel
