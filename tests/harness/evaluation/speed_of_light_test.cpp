#include "harness/evaluation/speed_of_light.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/problems.h"

namespace rekernel {
namespace {

DeviceProperties h200() {
  DeviceProperties device;
  device.name = "NVIDIA H200";
  device.major = 9;
  device.multiprocessors = 132;
  device.l2_bytes = 62'914'560;
  device.clock_khz = 1'980'000;
  device.memory_clock_khz = 3'201'000;
  device.memory_bus_bits = 6016;
  return device;
}

TEST(SpeedOfLight, RatesFollowFromTheDriversAttributes) {
  EXPECT_EQ(memory_bytes_per_s(h200()), 4'814'304'000'000);
  EXPECT_EQ(matrix_operations_per_s(h200()), 4096LL * 132 * 1'980'000'000);
}

TEST(SpeedOfLight, BytesLessTheCacheOrFewestOperations) {
  Problem problem;
  problem.least_bytes = 62'914'560 + 4'814'304'000;
  EXPECT_EQ(speed_of_light_ns(problem, h200()), 1'000'000);
  problem.fewest_matrix_operations = 4096LL * 132 * 1'980'000 * 3;
  EXPECT_EQ(speed_of_light_ns(problem, h200()), 3'000'000);
  // Neither the definition's operations nor the products that the tolerance needs.
  problem.fewest_matrix_operations = 0;
  problem.operations = 1LL << 60;
  problem.matrix_products = 3;
  EXPECT_EQ(speed_of_light_ns(problem, h200()), 1'000'000);
  problem.least_bytes = 1000;  // all of it may lie in the cache
  EXPECT_EQ(speed_of_light_ns(problem, h200()), 0);
}

TEST(SpeedOfLight, WhatIsNotKnownIsNoPartOfTheBound) {
  const Problem bytes_alone = *find_problem("softmax");
  const std::int64_t softmax = speed_of_light_ns(bytes_alone, h200());
  EXPECT_EQ(softmax, 432'994);
  for (std::int64_t DeviceProperties::*attribute :
       {&DeviceProperties::memory_clock_khz, &DeviceProperties::memory_bus_bits,
        &DeviceProperties::l2_bytes}) {
    DeviceProperties device = h200();
    device.*attribute = 0;
    EXPECT_EQ(speed_of_light_ns(bytes_alone, device), 0);
    EXPECT_FALSE(check_plausibility(1, bytes_alone, device)) << "without a bound, no verdict";
  }
  Problem operations_alone;
  operations_alone.fewest_matrix_operations = 1LL << 40;
  EXPECT_GT(speed_of_light_ns(operations_alone, h200()), 0);
  DeviceProperties unclocked = h200();
  unclocked.clock_khz = 0;
  EXPECT_EQ(speed_of_light_ns(operations_alone, unclocked), 0);
  DeviceProperties unknown = h200();
  unknown.major = 13;
  EXPECT_EQ(speed_of_light_ns(operations_alone, unknown), 0);
  DeviceProperties absurd = h200();  // no 64 bits hold the product
  absurd.memory_clock_khz = absurd.memory_bus_bits = absurd.clock_khz = 1LL << 62;
  EXPECT_LT(speed_of_light_ns(operations_alone, absurd), 1'000);
}

TEST(SpeedOfLight, ATimeBelowItIsImplausibleAndNoOtherIs) {
  const Problem softmax = *find_problem("softmax");
  EXPECT_FALSE(check_plausibility(432'994, softmax, h200()));
  const auto rejection = check_plausibility(423'973, softmax, h200());
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->status, Status::implausible_time);
  EXPECT_EQ(rejection->message,
            "median 423973 ns, below the speed of light: 432994 ns, the least that this device's "
            "memory and matrix units need for the work");
}

TEST(SpeedOfLight, TwoLevelsOfStrassensProductAreNotRefused) {
  // All multiprocessors at their highest clock throughout, and the further additions for nothing.
  for (const Problem& product : {*find_problem("matmul_fp16"), *find_problem("matmul_fp32")}) {
    const double seconds = 49.0 / 64.0 * static_cast<double>(product.operations) /
                           static_cast<double>(matrix_operations_per_s(h200()));
    EXPECT_FALSE(check_plausibility(static_cast<std::int64_t>(seconds * 1e9), product, h200()))
        << product.id;
    EXPECT_TRUE(check_plausibility(static_cast<std::int64_t>(seconds * 0.8e9), product, h200()))
        << product.id;
  }
}

/// Medians that were measured on an H200, of the fastest committed kernels.
TEST(SpeedOfLight, EveryProblemHasABoundThatGoodKernelsDoNotPass) {
  const std::map<std::string, std::int64_t> measured = {{"matmul_fp32", 401'744},
                                                        {"conv2d", 63'040},
                                                        {"softmax", 511'232},
                                                        {"layernorm", 153'072},
                                                        {"matmul_fp16", 183'680},
                                                        {"attention_fp16", 702'944},
                                                        {"conv2d_relu_maxpool", 55'600},
                                                        {"attention_fp16_causal", 380'640}};
  for (const Problem& problem : published_problems()) {
    EXPECT_GT(speed_of_light_ns(problem, h200()), 5'000) << problem.id;
    EXPECT_FALSE(check_plausibility(measured.at(problem.id), problem, h200())) << problem.id;
    EXPECT_TRUE(check_plausibility(0, problem, h200())) << problem.id;
  }
}

}  // namespace
}  // namespace rekernel
