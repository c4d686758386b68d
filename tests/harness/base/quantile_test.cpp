#include "harness/base/quantile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rekernel {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<std::int64_t> samples{40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(quantile(samples, 0.0), 10.0);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.5), 25.0);
  EXPECT_DOUBLE_EQ(quantile(samples, 1.0), 40.0);
  EXPECT_DOUBLE_EQ(quantile(std::vector<std::int64_t>{7}, 0.5), 7.0);
}

}  // namespace
}  // namespace rekernel
