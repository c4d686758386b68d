// The scale-aware bounds must let honest kernels pass with room and stop what is not the problem's
// computation. Kernels are imitated by rounding where they round, at the sizes that set the error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/inputs.h"
#include "tests/harness/problems/handwritten_truths.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

using Values = std::vector<double>;

/// By hand, which takes a tenth of what the interpreter of definitions takes.
Values written_truth(const Problem& problem, const HostInputs& inputs) {
  return handwritten_truth(problem, inputs).begin()->second;
}

Problem matmul(const char* id, std::int64_t m, std::int64_t n, std::int64_t k) {
  return sized_problem(id, {{"m", m}, {"n", n}, {"k", k}});
}

Sizes images(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t filters) {
  return {{"batch", batch}, {"height", height}, {"width", width}, {"filters", filters}};
}

Sizes one_head(std::int64_t length, std::int64_t head_dim) {
  return {{"batch", 1}, {"heads", 1}, {"length", length}, {"head_dim", head_dim}};
}

double half(double value) { return rounded_to(DType::f16, value); }

Values halves(Values values) {
  for (double& value : values) value = half(value);
  return values;
}

struct Errors {
  double rms = 0;  ///< over the truth's rms
  double max = 0;  ///< over the truth's rms
};

Errors errors(const Values& output, const Values& truth) {
  double squares = 0.0;
  double truth_squares = 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double error = output[i] - truth[i];
    squares += error * error;
    truth_squares += truth[i] * truth[i];
    largest = std::max(largest, std::fabs(error));
  }
  const double truth_rms = std::sqrt(truth_squares / static_cast<double>(truth.size()));
  return {std::sqrt(squares / truth_squares), largest / truth_rms};
}

void expect_passes_with_room(const Errors& found, const Tolerance& tolerance, double room) {
  EXPECT_LE(found.rms * room, tolerance.rms_error_over_rms);
  EXPECT_LE(found.max * room, tolerance.max_error_over_rms);
}

void expect_fails(const Errors& found, const Tolerance& tolerance) {
  EXPECT_TRUE(found.rms > tolerance.rms_error_over_rms || found.max > tolerance.max_error_over_rms)
      << found.rms << " " << found.max;
}

class MatmulTolerance : public testing::Test {
 protected:
  Problem problem = matmul("matmul_fp32", 48, 48, 4096);
  HostInputs inputs = host_inputs(problem, 11);
  Values truth = written_truth(problem, inputs);

  Values product(const Values& a, const Values& b) const {
    return written_truth(problem, {{"a", a}, {"b", b}});
  }
};

TEST_F(MatmulTolerance, TwoSplitProductsPass) {
  const double alpha = 1.0 / 64;
  Values p, x, q, y;
  for (const double a : inputs["a"]) {
    p.push_back(half((1 - alpha) * a));
    x.push_back(half(a - p.back()));
  }
  for (const double b : inputs["b"]) {
    q.push_back(half(b));
    y.push_back(half(q.back() + (b - q.back()) / alpha));
  }
  Values output = product(p, q);
  const Values second = product(x, y);
  for (std::size_t i = 0; i < output.size(); ++i) output[i] += second[i];
  expect_passes_with_room(errors(output, truth), problem.tolerance, 5);
}

TEST_F(MatmulTolerance, OneHalfProductFails) {
  const Errors found = errors(product(halves(inputs["a"]), halves(inputs["b"])), truth);
  EXPECT_GT(found.rms, 2 * problem.tolerance.rms_error_over_rms);
}

TEST_F(MatmulTolerance, ASkippedTileFails) {
  Values output = truth;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) output[i * 48 + j] = 0.0;
  }
  expect_fails(errors(output, truth), problem.tolerance);
}

TEST_F(MatmulTolerance, SwappedTilesFail) {
  Values output = truth;
  for (int j = 0; j < 8; ++j) std::swap(output[j], output[j + 8]);
  expect_fails(errors(output, truth), problem.tolerance);
}

TEST_F(MatmulTolerance, HalfResultsPassTheHalfProblem) {
  expect_passes_with_room(errors(halves(truth), truth), matmul("matmul_fp16", 1, 1, 1).tolerance,
                          3);
}

TEST_F(MatmulTolerance, ResultsThatPassedThroughBfloat16FailTheHalfProblem) {
  Values rounded = truth;
  for (double& value : rounded) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // 8 significant bits
    value = std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
  }
  expect_fails(errors(rounded, truth), matmul("matmul_fp16", 1, 1, 1).tolerance);
}

TEST(ConvolutionTolerance, HalfOperandsPass) {
  const Sizes sizes = images(2, 64, 64, 32);
  for (const Problem& problem :
       {sized_problem("conv2d", sizes), sized_problem("conv2d_relu_maxpool", sizes)}) {
    const HostInputs inputs = host_inputs(problem, 12);
    const Values truth = written_truth(problem, inputs);
    HostInputs rounded = inputs;
    rounded["input"] = halves(inputs.at("input"));
    rounded["weight"] = halves(inputs.at("weight"));
    const Errors found = errors(written_truth(problem, rounded), truth);
    EXPECT_GT(found.rms, 1e-5);  // it is a lower precision that passes
    expect_passes_with_room(found, problem.tolerance, 5);

    HostInputs without_bias = inputs;
    for (double& value : without_bias["bias"]) value = 0.0;
    expect_fails(errors(written_truth(problem, without_bias), truth), problem.tolerance);
  }
}

TEST(SoftmaxTolerance, SinglePrecisionPassesAndASampledDenominatorFails) {
  const std::int64_t columns = 65536;
  const Problem problem = sized_problem("softmax", {{"rows", 1}, {"columns", columns}});
  const HostInputs inputs = host_inputs(problem, 13);
  const Values& x = inputs.at("x");
  const Values truth = written_truth(problem, inputs);
  const auto softmax = [&](std::int64_t counted) {
    const auto largest = static_cast<float>(*std::max_element(x.begin(), x.end()));
    std::vector<float> lane(1024, 0.0f);
    for (std::int64_t i = 0; i < counted; ++i) {
      lane[i % 1024] += std::exp(static_cast<float>(x[i]) - largest);
    }
    float sum = 0.0f;
    for (const float part : lane) sum += part;
    sum *= static_cast<float>(columns) / static_cast<float>(counted);
    Values y;
    for (const double value : x) y.push_back(std::exp(static_cast<float>(value) - largest) / sum);
    return y;
  };
  expect_passes_with_room(errors(softmax(columns), truth), problem.tolerance, 10);
  expect_fails(errors(softmax(columns / 2), truth), problem.tolerance);
  expect_fails(errors(softmax(columns * 9 / 10), truth), problem.tolerance);
}

TEST(LayernormTolerance, SinglePrecisionPassesAndSampledStatisticsFail) {
  const Problem problem = sized_problem("layernorm", {{"batch", 1}});
  const HostInputs inputs = host_inputs(problem, 14);
  const Values& x = inputs.at("x");
  const Values& weight = inputs.at("weight");
  const Values& bias = inputs.at("bias");
  const Values truth = written_truth(problem, inputs);
  // One register per lane sums 4096 elements.
  const auto mean_of = [](std::size_t count, const auto& term) {
    std::vector<float> lane(1024, 0.0f);
    for (std::size_t i = 0; i < count; ++i) lane[i % 1024] += term(i);
    float sum = 0.0f;
    for (const float part : lane) sum += part;
    return sum / static_cast<float>(count);
  };
  const auto layernorm = [&](std::size_t counted) {
    const float mean = mean_of(counted, [&](std::size_t i) { return static_cast<float>(x[i]); });
    const float variance = mean_of(counted, [&](std::size_t i) {
      const float distance = static_cast<float>(x[i]) - mean;
      return distance * distance;
    });
    const float scale = 1.0f / std::sqrt(variance + 1e-5f);
    Values y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back((static_cast<float>(x[i]) - mean) * scale * static_cast<float>(weight[i]) +
                  static_cast<float>(bias[i]));
    }
    return y;
  };
  expect_passes_with_room(errors(layernorm(x.size()), truth), problem.tolerance, 5);
  expect_fails(errors(layernorm(x.size() / 2), truth), problem.tolerance);
}

// Softmax weights and results rounded to FP16, as between the two matrix products of a kernel.
Values attention_in_halves(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t length = problem.attribute("length");
  const std::int64_t head_dim = problem.attribute("head_dim");
  const bool causal = problem.attribute("causal") != 0;
  const double scale = problem.real_attribute("scale");
  const Values& q = inputs.at("q");
  const Values& k = inputs.at("k");
  const Values& v = inputs.at("v");
  Values o;
  for (std::int64_t row = 0; row < length; ++row) {
    const std::int64_t visible = causal ? row + 1 : length;
    Values score(visible, 0.0);
    for (std::int64_t j = 0; j < visible; ++j) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        score[j] += q[row * head_dim + d] * k[j * head_dim + d];
      }
    }
    const double largest = *std::max_element(score.begin(), score.end());
    double sum = 0.0;
    Values out(head_dim, 0.0);
    for (std::int64_t j = 0; j < visible; ++j) {
      const double weight = std::exp((score[j] - largest) * scale);
      const double rounded = half(weight);
      sum += weight;
      for (std::int64_t d = 0; d < head_dim; ++d) out[d] += rounded * v[j * head_dim + d];
    }
    for (const double value : out) o.push_back(half(value / sum));
  }
  return o;
}

TEST(AttentionTolerance, HalfWeightsPassAndASkippedTileFails) {
  const Sizes sizes = one_head(1024, 32);
  for (const Problem& problem :
       {sized_problem("attention_fp16", sizes), sized_problem("attention_fp16_causal", sizes)}) {
    const HostInputs inputs = host_inputs(problem, 15);
    const Values truth = written_truth(problem, inputs);
    expect_passes_with_room(errors(attention_in_halves(problem, inputs), truth), problem.tolerance,
                            3);
    Values output = truth;
    std::fill(output.end() - 8 * 32, output.end(), 0.0);
    expect_fails(errors(output, truth), problem.tolerance);
  }
}

TEST(EveryTolerance, ZerosAndConstantsFail) {
  const Sizes convolution = images(1, 32, 32, 8);
  const Sizes attention = one_head(64, 16);
  for (const Problem& problem :
       {matmul("matmul_fp32", 16, 16, 64), sized_problem("conv2d", convolution),
        sized_problem("softmax", {{"rows", 2}, {"columns", 4096}}),
        sized_problem("layernorm", {{"batch", 1}, {"channels", 2}, {"height", 16}, {"width", 16}}),
        sized_problem("conv2d_relu_maxpool", convolution), matmul("matmul_fp16", 16, 16, 64),
        sized_problem("attention_fp16", attention),
        sized_problem("attention_fp16_causal", attention)}) {
    SCOPED_TRACE(problem.id);
    const Values truth = written_truth(problem, host_inputs(problem, 16));
    double mean = 0.0;
    for (const double value : truth) mean += value / static_cast<double>(truth.size());
    expect_fails(errors(Values(truth.size(), 0.0), truth), problem.tolerance);
    expect_fails(errors(Values(truth.size(), mean), truth), problem.tolerance);
  }
}

}  // namespace
}  // namespace rekernel
