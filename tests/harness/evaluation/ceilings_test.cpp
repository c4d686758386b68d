#include "harness/evaluation/ceilings.h"

#include <gtest/gtest.h>

#include "ops/catalog.h"

namespace rekernel {
namespace {

/// A gigabyte moved, a teraoperation done: 1 ms each under these ceilings.
constexpr Ceilings ceilings{1'000'000'000'000, 1'000'000'000'000'000};

Problem problem(std::int64_t min_bytes, std::int64_t operations, int matrix_products) {
  Problem problem;
  problem.min_bytes = min_bytes;
  problem.operations = operations;
  problem.matrix_products = matrix_products;
  return problem;
}

DeviceProperties device(std::int64_t l2_bytes) {
  DeviceProperties device;
  device.l2_bytes = l2_bytes;
  return device;
}

TEST(Ceilings, TheFloorIsTheLongerOfBytesAndOperations) {
  const Problem copy = problem(1'000'000'000, 500'000'000'000, 2);
  EXPECT_EQ(floor_ns(copy, ceilings, 0), 1'000'000);
  EXPECT_EQ(floor_ns(copy, ceilings, 1), 1'000'000);
  EXPECT_EQ(floor_ns(copy, ceilings, 3), 1'500'000);
  EXPECT_EQ(floor_ns(copy, {1'000'000'000'000, 0}, 3), 1'000'000);
  EXPECT_EQ(floor_ns(copy, {}, 3), 0);
}

TEST(Ceilings, TheLimitLeavesOutWhatTheCacheMayHold) {
  const Problem copy = problem(1'000'000'000, 0, 0);
  EXPECT_EQ(implausible_below_ns(copy, ceilings, device(0)), 850'000);
  EXPECT_EQ(implausible_below_ns(copy, ceilings, device(200'000'000)), 680'000);
  EXPECT_EQ(implausible_below_ns(copy, ceilings, device(1'000'000'001)), 0);
}

TEST(Ceilings, TheLimitCountsOneMatrixProduct) {
  const std::int64_t operations = 2'000'000'000'000;
  EXPECT_EQ(implausible_below_ns(problem(0, operations, 0), ceilings, device(0)), 0);
  EXPECT_EQ(implausible_below_ns(problem(0, operations, 1), ceilings, device(0)), 1'700'000);
  EXPECT_EQ(implausible_below_ns(problem(0, operations, 2), ceilings, device(0)), 1'700'000);
}

TEST(Ceilings, ATimeBelowTheLimitIsImplausible) {
  const Problem copy = problem(1'000'000'000, 0, 0);
  EXPECT_FALSE(check_plausibility(850'000, copy, ceilings, device(0)));
  const auto rejection = check_plausibility(849'999, copy, ceilings, device(0));
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->status, Status::implausible_time);
  EXPECT_EQ(rejection->message, "median 849999 ns: this device cannot do the work in under 850000");
  EXPECT_FALSE(check_plausibility(0, copy, {}, device(0))) << "nothing was measured";
}

TEST(Ceilings, EveryProblemHasALimitBelowItsFloor) {
  // About what an H200 reaches.
  const Ceilings h200{4'280'000'000'000, 790'000'000'000'000};
  for (const Problem& each : catalog()) {
    const std::int64_t limit = implausible_below_ns(each, h200, device(60 << 20));
    EXPECT_GT(limit, 1'000) << each.id;
    EXPECT_LT(limit, floor_ns(each, h200, each.matrix_products)) << each.id;
    EXPECT_TRUE(check_plausibility(0, each, h200, device(60 << 20))) << each.id;
  }
}

}  // namespace
}  // namespace rekernel
