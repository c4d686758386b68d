#include "tests/harness/problems/handwritten_truths.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace rekernel {

namespace {

using Values = std::vector<double>;

Values product(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t m = problem.attribute("m");
  const std::int64_t n = problem.attribute("n");
  const std::int64_t k = problem.attribute("k");
  const Values& a = inputs.at("a");
  const Values& b = inputs.at("b");
  Values c(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

Values convolution(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t batch = problem.attribute("batch");
  const std::int64_t channels = problem.attribute("in_channels");
  const std::int64_t height = problem.attribute("height");
  const std::int64_t width = problem.attribute("width");
  const std::int64_t filters = problem.attribute("filters");
  const std::int64_t kernel = problem.attribute("kernel");
  const std::int64_t stride = problem.attribute("stride");
  const std::int64_t padding = problem.attribute("padding");
  const std::int64_t out_height = problem.attribute("out_height");
  const std::int64_t out_width = problem.attribute("out_width");
  const Values& input = inputs.at("input");
  const Values& weight = inputs.at("weight");
  const Values& bias = inputs.at("bias");

  // Sum over the taps of one output, those in the zero padding left out.
  const auto output_at = [&](std::int64_t image, std::int64_t filter, std::int64_t out_y,
                             std::int64_t out_x) {
    double sum = bias[filter];
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      for (std::int64_t ky = 0; ky < kernel; ++ky) {
        const std::int64_t y = out_y * stride - padding + ky;
        if (y < 0 || y >= height) continue;
        for (std::int64_t kx = 0; kx < kernel; ++kx) {
          const std::int64_t x = out_x * stride - padding + kx;
          if (x < 0 || x >= width) continue;
          sum += input[((image * channels + channel) * height + y) * width + x] *
                 weight[((filter * channels + channel) * kernel + ky) * kernel + kx];
        }
      }
    }
    return sum;
  };

  Values output;
  for (std::int64_t image = 0; image < batch; ++image) {
    for (std::int64_t filter = 0; filter < filters; ++filter) {
      for (std::int64_t y = 0; y < out_height; ++y) {
        for (std::int64_t x = 0; x < out_width; ++x) {
          output.push_back(output_at(image, filter, y, x));
        }
      }
    }
  }
  return output;
}

Values pooled_convolution(const Problem& problem, const HostInputs& inputs) {
  constexpr std::int64_t pool_kernel = 3, pool_stride = 2;
  const Values convolved = convolution(problem, inputs);
  const std::int64_t planes = problem.attribute("batch") * problem.attribute("filters");
  const std::int64_t height = problem.attribute("out_height");
  const std::int64_t width = problem.attribute("out_width");
  Values output;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t y = 0; y < problem.attribute("pooled_height"); ++y) {
      for (std::int64_t x = 0; x < problem.attribute("pooled_width"); ++x) {
        double largest = 0.0;  // ReLU
        for (std::int64_t dy = 0; dy < pool_kernel; ++dy) {
          for (std::int64_t dx = 0; dx < pool_kernel; ++dx) {
            const std::int64_t row = plane * height + y * pool_stride + dy;
            largest = std::max(largest, convolved[row * width + x * pool_stride + dx]);
          }
        }
        output.push_back(largest);
      }
    }
  }
  return output;
}

Values softmax(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t columns = problem.attribute("columns");
  Values y = inputs.at("x");
  for (auto row = y.begin(); row != y.end(); row += columns) {
    const double largest = *std::max_element(row, row + columns);
    double sum = 0.0;
    for (auto value = row; value != row + columns; ++value) {
      sum += * value = std::exp(*value - largest);
    }
    for (auto value = row; value != row + columns; ++value) *value /= sum;
  }
  return y;
}

Values layernorm(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t features = problem.attribute("features");
  const Values& x = inputs.at("x");
  const Values& weight = inputs.at("weight");
  const Values& bias = inputs.at("bias");
  Values y(x.size());
  for (std::int64_t row = 0; row < problem.attribute("batch"); ++row) {
    const double* in = x.data() + row * features;
    double sum = 0.0;
    for (std::int64_t i = 0; i < features; ++i) sum += in[i];
    const double mean = sum / static_cast<double>(features);
    double squares = 0.0;
    for (std::int64_t i = 0; i < features; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double variance = squares / static_cast<double>(features);
    const double deviation = std::sqrt(variance + problem.real_attribute("eps"));
    for (std::int64_t i = 0; i < features; ++i) {
      y[row * features + i] = (in[i] - mean) / deviation * weight[i] + bias[i];
    }
  }
  return y;
}

Values attention(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t heads = problem.attribute("batch") * problem.attribute("heads");
  const std::int64_t length = problem.attribute("length");
  const std::int64_t head_dim = problem.attribute("head_dim");
  const bool causal = problem.id == "attention_fp16_causal";
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const Values& q = inputs.at("q");
  const Values& k = inputs.at("k");
  const Values& v = inputs.at("v");
  Values o(q.size(), 0.0);

  const auto attend = [&](std::int64_t head, std::int64_t row) {
    const std::int64_t base = head * length * head_dim;
    const std::int64_t visible = causal ? row + 1 : length;
    Values weight(static_cast<std::size_t>(visible), 0.0);
    for (std::int64_t j = 0; j < visible; ++j) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        weight[j] += q[base + row * head_dim + d] * k[base + j * head_dim + d];
      }
      weight[j] *= scale;
    }
    const double largest = *std::max_element(weight.begin(), weight.end());
    double sum = 0.0;
    for (double& value : weight) sum += value = std::exp(value - largest);
    for (std::int64_t j = 0; j < visible; ++j) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        o[base + row * head_dim + d] += weight[j] / sum * v[base + j * head_dim + d];
      }
    }
  };
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < length; ++row) attend(head, row);
  }
  return o;
}

}  // namespace

HostInputs handwritten_truth(const Problem& problem, const HostInputs& inputs) {
  if (problem.id.starts_with("matmul_fp")) return {{"c", product(problem, inputs)}};
  if (problem.id == "conv2d") return {{"output", convolution(problem, inputs)}};
  if (problem.id == "conv2d_relu_maxpool") return {{"output", pooled_convolution(problem, inputs)}};
  if (problem.id == "softmax") return {{"y", softmax(problem, inputs)}};
  if (problem.id == "layernorm") return {{"y", layernorm(problem, inputs)}};
  if (problem.id.starts_with("attention_fp16")) return {{"o", attention(problem, inputs)}};
  throw std::logic_error("no handwritten truth of " + problem.id);
}

}  // namespace rekernel
