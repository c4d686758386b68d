#include "harness/evaluation/ceilings.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

/// A gigabyte moved, a teraoperation done: 1 ms each under these ceilings.
constexpr Ceilings ceilings{1'000'000'000'000, 1'000'000'000'000'000};

Problem copy(int matrix_products) {
  Problem problem;
  problem.min_bytes = 1'000'000'000;
  problem.operations = 500'000'000'000;
  problem.fewest_matrix_operations = 1;
  problem.matrix_products = matrix_products;
  return problem;
}

TEST(Ceilings, TheLongerOfBytesAndOperationsOfTheDefinition) {
  EXPECT_EQ(ceiling_ns(copy(0), ceilings), 1'000'000);
  EXPECT_EQ(ceiling_ns(copy(1), ceilings), 1'000'000);
  EXPECT_EQ(ceiling_ns(copy(3), ceilings), 1'500'000);
}

TEST(Ceilings, ARateThatNobodyMeasuredIsLeftOut) {
  EXPECT_EQ(ceiling_ns(copy(3), {1'000'000'000'000, 0}), 1'000'000);
  EXPECT_EQ(ceiling_ns(copy(3), {}), 0);
}

}  // namespace
}  // namespace rekernel
