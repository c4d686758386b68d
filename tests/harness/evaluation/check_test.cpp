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

}  // namespace
}  // namespace rekernel
