#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/inputs.h"
#include "ops/operators.h"

namespace rekernel {
namespace {

using Values = std::vector<double>;

void expect_output(const Problem& problem, const HostInputs& inputs, const Values& expected) {
  const Values output = problem.host_oracle(problem, inputs);
  ASSERT_EQ(output.size(), expected.size()) << problem.id;
  ASSERT_EQ(static_cast<std::int64_t>(output.size()), problem.output().elements());
  for (std::size_t i = 0; i < output.size(); ++i) {
    EXPECT_NEAR(output[i], expected[i], 1e-14 * (1.0 + std::fabs(expected[i])))
        << problem.id << " element " << i;
  }
}

TEST(HostOracle, Matmul) {
  const HostInputs inputs = {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {7, 8, 9, 10, 11, 12}}};
  expect_output(make_matmul_fp32(2, 2, 3), inputs, {58, 64, 139, 154});
  expect_output(make_matmul_fp16(2, 2, 3), inputs, {58, 64, 139, 154});
}

TEST(HostOracle, Conv2dWithPaddingAndStride) {
  const ConvolutionSizes sizes{.batch = 1,
                               .in_channels = 1,
                               .height = 3,
                               .width = 3,
                               .filters = 1,
                               .kernel = 2,
                               .stride = 2,
                               .padding = 1};
  expect_output(make_conv2d(sizes),
                {{"input", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"weight", {1, 2, 3, 4}}, {"bias", {0.5}}},
                {4.5, 18.5, 36.5, 77.5});
}

TEST(HostOracle, Conv2dSumsChannelsAndKeepsImagesAndFiltersApart) {
  const ConvolutionSizes sizes{.batch = 2,
                               .in_channels = 2,
                               .height = 1,
                               .width = 2,
                               .filters = 2,
                               .kernel = 1,
                               .stride = 1,
                               .padding = 0};
  expect_output(
      make_conv2d(sizes),
      {{"input", {1, 2, 3, 4, 5, 6, 7, 8}}, {"weight", {1, 10, 100, 1000}}, {"bias", {0, 0.5}}},
      {31, 42, 3100.5, 4200.5, 75, 86, 7500.5, 8600.5});
}

TEST(HostOracle, Conv2dReluMaxpool) {
  const ConvolutionSizes sizes{.batch = 1,
                               .in_channels = 1,
                               .height = 5,
                               .width = 5,
                               .filters = 2,
                               .kernel = 1,
                               .stride = 1,
                               .padding = 0};
  Values counting(25);
  for (int i = 0; i < 25; ++i) counting[i] = i;
  expect_output(make_conv2d_relu_maxpool(sizes),
                {{"input", counting}, {"weight", {1, -1}}, {"bias", {-10, 5}}},
                {2, 4, 12, 14, 5, 3, 0, 0});
}

TEST(HostOracle, Softmax) {
  expect_output(make_softmax(2, 3),
                {{"x", {std::log(1.0), std::log(2.0), std::log(5.0), 1000.0, 1000.0, 1000.0}}},
                {0.125, 0.25, 0.625, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0});
}

TEST(HostOracle, Layernorm) {
  const double normal = 1.0 / std::sqrt(1.00001);  // mean 2, variance 1, eps 1e-5
  expect_output(make_layernorm(2, 1, 1, 2),
                {{"x", {1, 3, 7, 7}}, {"weight", {2, -1}}, {"bias", {0.5, 0}}},
                {-2 * normal + 0.5, -normal, 0.5, 0});
}

TEST(HostOracle, Attention) {
  const AttentionSizes sizes{.batch = 1, .heads = 1, .length = 2, .head_dim = 4};
  // Scale ½: the second row's scores are 0 and ln 3, so its weights are ¼ and ¾.
  const HostInputs inputs = {{"q", {0, 0, 0, 0, 2 * std::log(3.0), 0, 0, 0}},
                             {"k", {0, 0, 0, 0, 1, 0, 0, 0}},
                             {"v", {1, 2, 0, -4, 5, 2, 8, 4}}};
  expect_output(make_attention_fp16(sizes), inputs, {3, 2, 4, 0, 4, 2, 6, 2});
  expect_output(make_attention_fp16_causal(sizes), inputs, {1, 2, 0, -4, 4, 2, 6, 2});
}

TEST(HostOracle, AttentionKeepsHeadsApart) {
  const AttentionSizes sizes{.batch = 1, .heads = 2, .length = 2, .head_dim = 1};
  const HostInputs inputs = {{"q", {0, 0, 0, 0}}, {"k", {1, 2, 3, 4}}, {"v", {1, 3, 10, 30}}};
  expect_output(make_attention_fp16(sizes), inputs, {2, 2, 20, 20});
  expect_output(make_attention_fp16_causal(sizes), inputs, {1, 2, 10, 20});
}

TEST(HostOracle, SoftmaxRowsSumToOneOnEveryStressCase) {
  Problem problem = make_softmax(4, 500);
  for (const StressCase& stress : problem.stress_cases) {
    problem.tensors[0].distribution = stress.inputs.at("x");
    const Values y = problem.host_oracle(problem, host_inputs(problem, 9));
    for (int row = 0; row < 4; ++row) {
      double sum = 0.0;
      for (int i = 0; i < 500; ++i) sum += y[row * 500 + i];
      EXPECT_NEAR(sum, 1.0, 1e-12) << stress.name;
    }
  }
}

// Adding a constant to the inputs and scaling them changes nothing but the share of eps.
TEST(HostOracle, LayernormIgnoresShiftAndScale) {
  const Problem problem = make_layernorm(2, 3, 8, 8);
  HostInputs inputs = host_inputs(problem, 4);
  const Values expected = problem.host_oracle(problem, inputs);
  for (double& value : inputs.at("x")) value = value * 4096.0 + 1e6;
  const Values output = problem.host_oracle(problem, inputs);
  for (std::size_t i = 0; i < output.size(); ++i) EXPECT_NEAR(output[i], expected[i], 1e-4);
}

// Away from the padding, a convolution commutes with shifting its input by one stride.
TEST(HostOracle, ConvolutionCommutesWithShifts) {
  const ConvolutionSizes sizes{.batch = 1,
                               .in_channels = 2,
                               .height = 12,
                               .width = 12,
                               .filters = 3,
                               .kernel = 3,
                               .stride = 2,
                               .padding = 0};
  const Problem problem = make_conv2d(sizes);
  HostInputs inputs = host_inputs(problem, 4);
  const Values expected = problem.host_oracle(problem, inputs);
  HostInputs shifted = inputs;
  for (int row = 0; row < 2 * 12; ++row) {
    for (int x = 0; x < 10; ++x) shifted["input"][row * 12 + x] = inputs["input"][row * 12 + x + 2];
  }
  const Values output = problem.host_oracle(problem, shifted);
  for (int row = 0; row < 3 * 5; ++row) {
    for (int x = 0; x < 4; ++x) EXPECT_EQ(output[row * 5 + x], expected[row * 5 + x + 1]);
  }
}

}  // namespace
}  // namespace rekernel
