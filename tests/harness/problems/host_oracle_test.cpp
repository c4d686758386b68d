#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/inputs.h"
#include "tests/harness/problems/handwritten_truths.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

using Values = std::vector<double>;

/// The truth of a problem with one output.
Values truth_of(const Problem& problem, const HostInputs& inputs) {
  const HostInputs outputs = problem.host_oracle(inputs);
  EXPECT_EQ(outputs.size(), 1u) << problem.id;
  return outputs.at(problem.outputs().front()->name);
}

void expect_output(const Problem& problem, const HostInputs& inputs, const Values& expected) {
  const Values output = truth_of(problem, inputs);
  ASSERT_EQ(output.size(), expected.size()) << problem.id;
  ASSERT_EQ(static_cast<std::int64_t>(output.size()), problem.outputs().front()->elements());
  for (std::size_t i = 0; i < output.size(); ++i) {
    EXPECT_NEAR(output[i], expected[i], 1e-14 * (1.0 + std::fabs(expected[i])))
        << problem.id << " element " << i;
  }
}

TEST(HostOracle, Matmul) {
  const HostInputs inputs = {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {7, 8, 9, 10, 11, 12}}};
  for (const char* id : {"matmul_fp32", "matmul_fp16"}) {
    expect_output(sized_problem(id, {{"m", 2}, {"n", 2}, {"k", 3}}), inputs, {58, 64, 139, 154});
  }
}

Sizes of_convolution(std::int64_t batch, std::int64_t channels, std::int64_t height,
                     std::int64_t width, std::int64_t filters, std::int64_t kernel,
                     std::int64_t stride, std::int64_t padding) {
  return {{"batch", batch},   {"in_channels", channels}, {"height", height},
          {"width", width},   {"filters", filters},      {"kernel", kernel},
          {"stride", stride}, {"padding", padding}};
}

TEST(HostOracle, Conv2dWithPaddingAndStride) {
  expect_output(sized_problem("conv2d", of_convolution(1, 1, 3, 3, 1, 2, 2, 1)),
                {{"input", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"weight", {1, 2, 3, 4}}, {"bias", {0.5}}},
                {4.5, 18.5, 36.5, 77.5});
}

TEST(HostOracle, Softmax) {
  expect_output(sized_problem("softmax", {{"rows", 2}, {"columns", 3}}),
                {{"x", {std::log(1.0), std::log(2.0), std::log(5.0), 1000.0, 1000.0, 1000.0}}},
                {0.125, 0.25, 0.625, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0});
}

TEST(HostOracle, Layernorm) {
  const double normal = 1.0 / std::sqrt(1.00001);  // mean 2, variance 1, eps 1e-5
  expect_output(
      sized_problem("layernorm", {{"batch", 2}, {"channels", 1}, {"height", 1}, {"width", 2}}),
      {{"x", {1, 3, 7, 7}}, {"weight", {2, -1}}, {"bias", {0.5, 0}}},
      {-2 * normal + 0.5, -normal, 0.5, 0});
}

Sizes of_attention(std::int64_t batch, std::int64_t heads, std::int64_t length,
                   std::int64_t head_dim) {
  return {{"batch", batch}, {"heads", heads}, {"length", length}, {"head_dim", head_dim}};
}

TEST(HostOracle, Attention) {
  // Scale ½: the second row's scores are 0 and ln 3, so its weights are ¼ and ¾.
  const HostInputs inputs = {{"q", {0, 0, 0, 0, 2 * std::log(3.0), 0, 0, 0}},
                             {"k", {0, 0, 0, 0, 1, 0, 0, 0}},
                             {"v", {1, 2, 0, -4, 5, 2, 8, 4}}};
  const Sizes sizes = of_attention(1, 1, 2, 4);
  expect_output(sized_problem("attention_fp16", sizes), inputs, {3, 2, 4, 0, 4, 2, 6, 2});
  expect_output(sized_problem("attention_fp16_causal", sizes), inputs, {1, 2, 0, -4, 4, 2, 6, 2});
}

/// Small instances of the published problems, whose axes differ from each other.
std::vector<Problem> small_published() {
  std::vector<Problem> problems;
  for (const char* id : {"matmul_fp32", "matmul_fp16"}) {
    problems.push_back(sized_problem(id, {{"m", 1}, {"n", 1}, {"k", 1}}));
    problems.push_back(sized_problem(id, {{"m", 30}, {"n", 17}, {"k", 43}}));
  }
  for (const char* id : {"conv2d", "conv2d_relu_maxpool"}) {
    problems.push_back(sized_problem(id, of_convolution(3, 3, 45, 38, 5, 11, 4, 2)));
    problems.push_back(sized_problem(id, of_convolution(2, 5, 9, 13, 31, 3, 2, 1)));
    problems.push_back(sized_problem(id, of_convolution(1, 1, 3, 3, 1, 1, 1, 1)));
  }
  problems.push_back(sized_problem("softmax", {{"rows", 1}, {"columns", 1}}));
  problems.push_back(sized_problem("softmax", {{"rows", 7}, {"columns", 401}}));
  problems.push_back(
      sized_problem("layernorm", {{"batch", 3}, {"channels", 5}, {"height", 6}, {"width", 7}}));
  for (const char* id : {"attention_fp16", "attention_fp16_causal"}) {
    problems.push_back(sized_problem(id, of_attention(2, 3, 23, 8)));
    problems.push_back(sized_problem(id, of_attention(1, 1, 1, 1)));
  }
  return problems;
}

TEST(HostOracle, DefinitionsSayWhatWasWrittenByHand) {
  for (const Problem& problem : small_published()) {
    SCOPED_TRACE(problem_header(problem));
    const HostInputs inputs = host_inputs(problem, 21);
    const HostInputs written = handwritten_truth(problem, inputs);
    const HostInputs defined = problem.host_oracle(inputs);
    ASSERT_EQ(defined.size(), 1u);
    const Values& expected = written.begin()->second;
    const Values& output = defined.at(written.begin()->first);
    ASSERT_EQ(output.size(), expected.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
      ASSERT_NEAR(output[i], expected[i], 1e-12 * (1.0 + std::fabs(expected[i]))) << i;
    }
  }
}

TEST(HostOracle, SoftmaxRowsSumToOneOnEveryStressCase) {
  Problem problem = sized_problem("softmax", {{"rows", 4}, {"columns", 500}});
  for (const StressCase& stress : problem.stress_cases) {
    problem.tensors[0].distribution = stress.inputs.at("x");
    const Values y = truth_of(problem, host_inputs(problem, 9));
    for (int row = 0; row < 4; ++row) {
      double sum = 0.0;
      for (int i = 0; i < 500; ++i) sum += y[row * 500 + i];
      EXPECT_NEAR(sum, 1.0, 1e-12) << stress.name;
    }
  }
}

// Adding a constant to the inputs and scaling them changes nothing but the share of eps.
TEST(HostOracle, LayernormIgnoresShiftAndScale) {
  const Problem problem =
      sized_problem("layernorm", {{"batch", 2}, {"channels", 3}, {"height", 8}, {"width", 8}});
  HostInputs inputs = host_inputs(problem, 4);
  const Values expected = truth_of(problem, inputs);
  for (double& value : inputs.at("x")) value = value * 4096.0 + 1e6;
  const Values output = truth_of(problem, inputs);
  for (std::size_t i = 0; i < output.size(); ++i) EXPECT_NEAR(output[i], expected[i], 1e-4);
}

// Away from the padding, a convolution commutes with shifting its input by one stride.
TEST(HostOracle, ConvolutionCommutesWithShifts) {
  const Problem problem = sized_problem("conv2d", of_convolution(1, 2, 12, 12, 3, 3, 2, 1));
  HostInputs inputs = host_inputs(problem, 4);
  const Values expected = truth_of(problem, inputs);
  HostInputs shifted = inputs;
  for (int row = 0; row < 2 * 12; ++row) {
    for (int x = 0; x < 10; ++x) shifted["input"][row * 12 + x] = inputs["input"][row * 12 + x + 2];
  }
  const Values output = truth_of(problem, shifted);
  for (int row = 0; row < 3 * 6; ++row) {
    for (int x = 1; x < 4; ++x) EXPECT_EQ(output[row * 6 + x], expected[row * 6 + x + 1]);
  }
}

}  // namespace
}  // namespace rekernel
