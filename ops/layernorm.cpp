#include <algorithm>
#include <cmath>

#include "ops/operators.h"
#include "ops/oracle.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr std::int64_t threads = 256;
constexpr std::int64_t elements_per_block = 4096;
constexpr std::int64_t max_blocks_per_row = 1024;

constexpr const char* oracle_source = R"cuda(
// blockIdx.y is the row; the blocks along x share it. Two passes for the statistics, so that no
// cancellation enters the variance: sums, then squares of the distances from the mean.

__device__ double total_of_row(const double* partial) {
  double sum = 0.0;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
    sum += partial[1ll * blockIdx.y * gridDim.x + i];
  }
  return block::sum(sum);
}

template <class Function>
__device__ void for_each_feature(Function function) {
  const long long step = 1ll * gridDim.x * blockDim.x;
  for (long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x; i < problem::features; i += step) {
    function(i);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    partial_sums(const float* __restrict__ x, double* __restrict__ sums) {
  const float* row = x + 1ll * blockIdx.y * problem::features;
  double sum = 0.0;
  for_each_feature([&](long long i) { sum += row[i]; });
  sum = block::sum(sum);
  if (threadIdx.x == 0) sums[1ll * blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    partial_squares(const float* __restrict__ x, const double* __restrict__ sums,
                    double* __restrict__ squares) {
  const float* row = x + 1ll * blockIdx.y * problem::features;
  const double mean = total_of_row(sums) / problem::features;
  double sum = 0.0;
  for_each_feature([&](long long i) {
    const double distance = row[i] - mean;
    sum += distance * distance;
  });
  sum = block::sum(sum);
  if (threadIdx.x == 0) squares[1ll * blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    normalise(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, const double* __restrict__ sums,
              const double* __restrict__ squares, double* __restrict__ truth) {
  const long long first = 1ll * blockIdx.y * problem::features;
  const double mean = total_of_row(sums) / problem::features;
  const double variance = total_of_row(squares) / problem::features;
  const double deviation = sqrt(variance + problem::eps);
  for_each_feature([&](long long i) {
    const double normal = (x[first + i] - mean) / deviation;
    truth[first + i] = normal * weight[i] + bias[i];
  });
}
)cuda";

constexpr const char* scaffold_source = R"cuda(#include "problem.h"

// The sum of one value of every thread of a block of 1024.
__device__ double sum_over_block(double value) {
  __shared__ double shared[1024];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 512; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const double result = shared[0];
  __syncthreads();
  return result;
}

// A block makes one row: mean, then variance about it, then the result. The variance is never taken as a
// difference of large sums, which would cancel.
extern "C" __global__ void layernorm(const float* x, const float* weight, const float* bias,
                                     float* y) {
  using namespace problem;
  const float* in = x + 1ll * blockIdx.x * features;
  float* out = y + 1ll * blockIdx.x * features;

  double sum = 0.0;
  for (int i = threadIdx.x; i < features; i += blockDim.x) sum += in[i];
  const double mean = sum_over_block(sum) / features;

  double squares = 0.0;
  for (int i = threadIdx.x; i < features; i += blockDim.x) {
    squares += (in[i] - mean) * (in[i] - mean);
  }
  const double scale = 1.0 / sqrt(sum_over_block(squares) / features + eps);

  for (int i = threadIdx.x; i < features; i += blockDim.x) {
    out[i] = float((in[i] - mean) * scale) * weight[i] + bias[i];
  }
}
)cuda";

std::vector<double> host_oracle(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t features = problem.attribute("features");
  const std::vector<double>& x = inputs.at("x");
  const std::vector<double>& weight = inputs.at("weight");
  const std::vector<double>& bias = inputs.at("bias");
  std::vector<double> y(x.size());
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

Program device_oracle(std::int64_t batch, std::int64_t features) {
  const std::int64_t blocks =
      std::clamp<std::int64_t>(ceil_div(features, elements_per_block), 1, max_blocks_per_row);
  const std::int64_t partial_bytes = batch * blocks * size_in_bytes(DType::f64);
  Program program;
  program.source = "#include \"problem.h\"\n" + block_reduction_source() + oracle_source;
  program.workspaces = {{"sums", partial_bytes}, {"squares", partial_bytes}};
  program.steps = {
      simple_launch("partial_sums", blocks, batch, threads, buffers({"x", "sums"})),
      simple_launch("partial_squares", blocks, batch, threads, buffers({"x", "sums", "squares"})),
      simple_launch("normalise", blocks, batch, threads,
                    buffers({"x", "weight", "bias", "sums", "squares", "truth"}))};
  return program;
}

Program scaffold(std::int64_t batch) {
  Program program;
  program.source = scaffold_source;
  program.steps = {
      simple_launch("layernorm", batch, 1, 1024, buffers({"x", "weight", "bias", "y"}))};
  return program;
}

}  // namespace

Problem make_layernorm(std::int64_t batch, std::int64_t channels, std::int64_t height,
                       std::int64_t width) {
  const auto normal = [](double mean, double deviation) {
    return Distribution{Distribution::Kind::normal, mean, deviation};
  };
  const auto constant = [](double value) {
    return Distribution{Distribution::Kind::constant, value};
  };
  const std::int64_t features = channels * height * width;
  Problem problem;
  problem.id = "layernorm";
  problem.title = "layer norm over the last three dims, FP32";
  problem.tensors = {{"x", DType::f32, {batch, channels, height, width}, Role::input},
                     {"weight", DType::f32, {channels, height, width}, Role::input},
                     {"bias", DType::f32, {channels, height, width}, Role::input},
                     {"y", DType::f32, {batch, channels, height, width}, Role::output}};
  problem.attributes = {{"batch", batch}, {"features", features}, {"eps", 1e-5}};
  // FP32 arithmetic with a tree of partial sums gives 1e-6 of the rms, a long sum in one register
  // 5e-6, parameters rounded to 16 bits 2.4e-5; the largest output is 30 times the rms. Statistics
  // from half of the elements are off by 3e-4, from all but one part in 128 by 3.8e-5.
  problem.tolerance.rms_error_over_rms = 3e-5;
  problem.tolerance.max_error_over_rms = 1e-3;
  problem.stress_cases = {
      {"mean_1000_deviation_0.1", {{"x", normal(1000.0, 0.1)}}},
      {"scaled_1e-4", {{"x", normal(0.0, 1e-4)}}},
      {"scaled_1e4", {{"x", normal(0.0, 1e4)}}},
      {"constant", {{"x", constant(5.0)}}},  // no variance: leaves the bias
      {"zeros", {{"x", constant(0.0)}}},     // leaves the bias
  };
  add_uneven_cases(problem, features);
  problem.min_bytes = bytes_moved_once(problem.tensors);
  // One for the mean, three for the variance, four to normalise, scale and shift.
  problem.operations = 8 * batch * features;
  problem.pytorch = "F.layer_norm(x, weight.shape, weight, bias, eps)";
  problem.host_oracle = host_oracle;
  problem.device_oracle = device_oracle(batch, features);
  problem.scaffold = scaffold(batch);
  return problem;
}

Problem make_layernorm() { return make_layernorm(16, 64, 256, 256); }

}  // namespace rekernel
