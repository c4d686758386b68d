// All blocks of a cooperative grid work on one row at a time. What they found so far goes through a
// workspace and a barrier of the grid.

#include <cooperative_groups.h>

#include "problem.h"

namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::features / 4;
constexpr int most_blocks = 2048;  // that the workspace has room for
static_assert(problem::features % 4 == 0, "rows are read four floats at a time");

/// The sum of one value of every thread; every thread gets it.
__device__ double sum_over_block(double value) {
  __shared__ double of_warps[warps];
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0.0;
  for (int warp = 0; warp < warps; ++warp) sum += of_warps[warp];
  __syncthreads();
  return sum;
}

/// The same over the grid. Meets all blocks. `partials` has a place for every one of them, and
/// nobody may write it again before the next call but one.
__device__ double sum_over_grid(double value, double* partials) {
  value = sum_over_block(value);
  if (threadIdx.x == 0) partials[blockIdx.x] = value;
  cooperative_groups::this_grid().sync();
  double sum = 0.0;
  for (int block = threadIdx.x; block < gridDim.x; block += threads) sum += partials[block];
  return sum_over_block(sum);
}

template <class Function>
__device__ void for_each_quad(Function function) {
  for (int i = blockIdx.x * threads + threadIdx.x; i < row_quads; i += gridDim.x * threads) {
    function(i);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    layernorm(const float* x, const float* weight, const float* bias, double* partials, float* y) {
  const float4* weights = reinterpret_cast<const float4*>(weight);
  const float4* biases = reinterpret_cast<const float4*>(bias);
  double* const of_sums = partials;
  double* const of_squares = partials + most_blocks;
  if (gridDim.x > most_blocks) __trap();

  for (int row = 0; row < problem::batch; ++row) {
    const float4* in = reinterpret_cast<const float4*>(x) + 1ll * row * row_quads;
    float4* out = reinterpret_cast<float4*>(y) + 1ll * row * row_quads;

    double sum = 0.0;
    for_each_quad([&](int i) {
      const float4 v = in[i];
      sum += (static_cast<double>(v.x) + v.y) + (static_cast<double>(v.z) + v.w);
    });
    const double mean = sum_over_grid(sum, of_sums) / problem::features;

    double squares = 0.0;
    for_each_quad([&](int i) {
      const float4 v = in[i];
      squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean);
      squares += (v.z - mean) * (v.z - mean) + (v.w - mean) * (v.w - mean);
    });
    const double variance = sum_over_grid(squares, of_squares) / problem::features;
    const float factor = static_cast<float>(1.0 / sqrt(variance + problem::eps));

    for_each_quad([&](int i) {
      const float4 v = in[i];
      const float4 w = weights[i];
      const float4 b = biases[i];
      out[i] = make_float4(static_cast<float>(v.x - mean) * factor * w.x + b.x,
                           static_cast<float>(v.y - mean) * factor * w.y + b.y,
                           static_cast<float>(v.z - mean) * factor * w.z + b.z,
                           static_cast<float>(v.w - mean) * factor * w.w + b.w);
    });
  }
}
