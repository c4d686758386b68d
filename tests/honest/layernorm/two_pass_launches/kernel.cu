// Two passes for the statistics and a third for the result, a launch each. blockIdx.y is the row,
// blockIdx.x the slice of it.

#include "problem.h"

namespace {

constexpr int slices = 128;
constexpr int threads = 256;
constexpr int slice_features = problem::features / slices;
static_assert(problem::features % (slices * threads) == 0, "even slices");

/// The sum of one value of every thread; every thread gets it.
__device__ double sum_over_block(double value) {
  __shared__ double shared[threads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const double result = shared[0];
  __syncthreads();
  return result;
}

/// The mean over a row of what its slices add up to.
__device__ double mean_of_row(const double* of_slices) {
  double sum = 0.0;
  for (int slice = threadIdx.x; slice < slices; slice += threads) {
    sum += of_slices[blockIdx.y * slices + slice];
  }
  return sum_over_block(sum) / problem::features;
}

}  // namespace

extern "C" __global__ void sum_slices(const float* x, double* sums) {
  const float* in = x + 1ll * blockIdx.y * problem::features + blockIdx.x * slice_features;
  double sum = 0.0;
  for (int i = threadIdx.x; i < slice_features; i += threads) sum += in[i];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.y * slices + blockIdx.x] = sum;
}

extern "C" __global__ void square_slices(const float* x, const double* sums, double* squares) {
  const float* in = x + 1ll * blockIdx.y * problem::features + blockIdx.x * slice_features;
  const double mean = mean_of_row(sums);
  double sum = 0.0;
  for (int i = threadIdx.x; i < slice_features; i += threads) {
    const double distance = in[i] - mean;
    sum += distance * distance;
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) squares[blockIdx.y * slices + blockIdx.x] = sum;
}

extern "C" __global__ void normalise(const float* x, const float* weight, const float* bias,
                                     const double* sums, const double* squares, float* y) {
  const int feature = blockIdx.x * slice_features;
  const float* in = x + 1ll * blockIdx.y * problem::features + feature;
  float* out = y + 1ll * blockIdx.y * problem::features + feature;
  const double mean = mean_of_row(sums);
  const double factor = 1.0 / sqrt(mean_of_row(squares) + problem::eps);
  for (int i = threadIdx.x; i < slice_features; i += threads) {
    const float normal = static_cast<float>((in[i] - mean) * factor);
    out[i] = normal * weight[feature + i] + bias[feature + i];
  }
}
