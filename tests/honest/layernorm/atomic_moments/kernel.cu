// Sum and squared deviations of a row by atomics. blockIdx.y is the row; the blocks along x share
// it. Distances are taken from the row's first element, so that a large mean costs no digits.

#include "problem.h"

namespace {

/// Of one row: the sum of x - first, and the sum of squared distances from the mean.
struct RowMoments {
  double sum;
  double squares;
};

template <class Function>
__device__ void for_each_feature(Function function) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < problem::features;
       i += gridDim.x * blockDim.x) {
    function(i);
  }
}

/// Adds a value of every thread to `total`.
__device__ void add_to(double* total, double value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(total, value);
}

__device__ double mean_distance(const RowMoments& row) { return row.sum / problem::features; }

}  // namespace

extern "C" __global__ void add_sums(const float* x, RowMoments* moments) {
  const float* in = x + 1ll * blockIdx.y * problem::features;
  const float first = in[0];
  double sum = 0.0;
  for_each_feature([&](int i) { sum += static_cast<double>(in[i]) - first; });
  add_to(&moments[blockIdx.y].sum, sum);
}

extern "C" __global__ void add_squares(const float* x, RowMoments* moments) {
  const float* in = x + 1ll * blockIdx.y * problem::features;
  const double mean = in[0] + mean_distance(moments[blockIdx.y]);
  double squares = 0.0;
  for_each_feature([&](int i) { squares += (in[i] - mean) * (in[i] - mean); });
  add_to(&moments[blockIdx.y].squares, squares);
}

extern "C" __global__ void normalise(const float* x, const float* weight, const float* bias,
                                     const RowMoments* moments, float* y) {
  const float* in = x + 1ll * blockIdx.y * problem::features;
  float* out = y + 1ll * blockIdx.y * problem::features;
  const RowMoments row = moments[blockIdx.y];
  const double mean = in[0] + mean_distance(row);
  const float factor =
      static_cast<float>(1.0 / sqrt(row.squares / problem::features + problem::eps));
  for_each_feature(
      [&](int i) { out[i] = static_cast<float>(in[i] - mean) * factor * weight[i] + bias[i]; });
}
