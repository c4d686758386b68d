#include <algorithm>
#include <cmath>

#include "ops/operators.h"
#include "ops/oracle.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr std::int64_t threads = 512;

constexpr const char* oracle_source = R"cuda(
extern "C" __global__ void __launch_bounds__(512)
    softmax_oracle(const float* __restrict__ x, double* __restrict__ truth) {
  using namespace problem;
  const float* in = x + 1ll * blockIdx.x * columns;
  double* out = truth + 1ll * blockIdx.x * columns;

  float largest = in[0];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, in[i]);
  const double shift = block::maximum(largest);

  double sum = 0.0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += exp(in[i] - shift);
  const double total = block::sum(sum);

  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = exp(in[i] - shift) / total;
}
)cuda";

constexpr const char* scaffold_source = R"cuda(#include "problem.h"

// Combines a value of every thread of a block of 256.
template <class Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float shared[256];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

// A block makes one row, in three passes over it.
extern "C" __global__ void softmax(const float* x, float* y) {
  using namespace problem;
  const float* in = x + 1ll * blockIdx.x * columns;
  float* out = y + 1ll * blockIdx.x * columns;

  float largest = in[threadIdx.x];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, in[i]);
  largest = reduce(largest, [](float a, float b) { return fmaxf(a, b); });

  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(in[i] - largest);
  sum = reduce(sum, [](float a, float b) { return a + b; });

  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(in[i] - largest) / sum;
}
)cuda";

constexpr const char* rows_sum_to_one_source = R"cuda(
extern "C" __global__ void __launch_bounds__(512)
    row_violation(const float* __restrict__ y, double* __restrict__ row_violations) {
  using namespace problem;
  const float* row = y + 1ll * blockIdx.x * columns;
  double sum = 0.0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i];
  const double violation = fabs(block::sum(sum) - 1.0);
  // A maximum could drop a NaN; infinity stays.
  const double infinity = __longlong_as_double(0x7ff0000000000000ll);
  if (threadIdx.x == 0) row_violations[blockIdx.x] = violation == violation ? violation : infinity;
}

extern "C" __global__ void __launch_bounds__(512)
    largest_violation(const double* __restrict__ row_violations, double* __restrict__ violation) {
  double largest = 0.0;
  for (int i = threadIdx.x; i < problem::rows; i += blockDim.x) {
    largest = fmax(largest, row_violations[i]);
  }
  largest = block::maximum(largest);
  if (threadIdx.x == 0) *violation = largest;
}
)cuda";

std::vector<double> host_oracle(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t columns = problem.attribute("columns");
  std::vector<double> y = inputs.at("x");
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

Program device_oracle(std::int64_t rows) {
  Program program;
  program.source = "#include \"problem.h\"\n" + block_reduction_source() + oracle_source;
  program.steps = {simple_launch("softmax_oracle", rows, 1, threads, buffers({"x", "truth"}))};
  return program;
}

Program scaffold(std::int64_t rows) {
  Program program;
  program.source = scaffold_source;
  program.steps = {simple_launch("softmax", rows, 1, 256, buffers({"x", "y"}))};
  return program;
}

Invariant rows_sum_to_one(std::int64_t rows) {
  Invariant invariant;
  invariant.name = "rows sum to 1";
  // FP32 arithmetic stays below 1e-5 whatever the inputs; a denominator from half of the row's
  // elements is off by 5e-3 on average, one without a single large element by 1e-4 in some rows.
  invariant.bound = 1e-4;
  Program& program = invariant.program;
  program.source = "#include \"problem.h\"\n" + block_reduction_source() + rows_sum_to_one_source;
  program.workspaces = {{"row_violations", rows * size_in_bytes(DType::f64)}};
  program.steps = {
      simple_launch("row_violation", rows, 1, threads, buffers({"y", "row_violations"})),
      simple_launch("largest_violation", 1, 1, threads, buffers({"row_violations", "violation"}))};
  return invariant;
}

}  // namespace

Problem make_softmax(std::int64_t rows, std::int64_t columns) {
  const auto normal = [](double mean, double deviation) {
    return Distribution{Distribution::Kind::normal, mean, deviation};
  };
  const auto constant = [](double value) {
    return Distribution{Distribution::Kind::constant, value};
  };
  Problem problem;
  problem.id = "softmax";
  problem.title = "softmax over dim 1, FP32";
  problem.tensors = {{"x", DType::f32, {rows, columns}, Role::input},
                     {"y", DType::f32, {rows, columns}, Role::output}};
  problem.attributes = {{"rows", rows}, {"columns", columns}};
  // No matrix unit is involved and nothing is gained by halves, so FP32 arithmetic is expected:
  // with a hardware exponential it gives 1e-6 of each element, and the largest element is 90 times
  // the rms. A denominator from a sample of the row's elements, even 95% of them, exceeds 1e-4.
  problem.tolerance.rms_error_over_rms = 1e-4;
  problem.tolerance.max_error_over_rms = 1e-2;
  problem.stress_cases = {
      {"large", {{"x", normal(0.0, 100.0)}}},    {"mean_1e4", {{"x", normal(1e4, 1.0)}}},
      {"mean_-1e4", {{"x", normal(-1e4, 1.0)}}}, {"scaled_1e-4", {{"x", normal(0.0, 1e-4)}}},
      {"equal", {{"x", constant(88.7)}}},        {"zeros", {{"x", constant(0.0)}}},
  };
  add_uneven_cases(problem, columns);
  problem.invariants = {rows_sum_to_one(rows)};
  problem.min_bytes = bytes_moved_once(problem.tensors);
  problem.operations = 5 * rows * columns;  // maximum, subtraction, exponential, sum, division
  problem.pytorch = "torch.softmax(x, dim=1)";
  problem.host_oracle = host_oracle;
  problem.device_oracle = device_oracle(rows);
  problem.scaffold = scaffold(rows);
  return problem;
}

Problem make_softmax() { return make_softmax(4096, 65536); }

}  // namespace rekernel
