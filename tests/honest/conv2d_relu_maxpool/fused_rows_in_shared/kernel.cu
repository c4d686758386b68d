// A block makes three rows of pooled outputs of one image for four filters. The seven rows of the
// convolution that they need go no further than shared memory.

#include "problem.h"

namespace {

constexpr int together = 4;
constexpr int pooled_rows = 3;
constexpr int rows = (pooled_rows - 1) * problem::pool_stride + problem::pool_kernel;
constexpr int depth = problem::in_channels * problem::kernel * problem::kernel;
constexpr int tile = rows * problem::out_width;
constexpr int pooled_tile = pooled_rows * problem::pooled_width;
static_assert(problem::pooled_height % pooled_rows == 0 && problem::filters % together == 0,
              "whole tiles");

/// Four filters at one pixel of the convolution, without the bias.
__device__ float4 convolve(const float* image, const float4* weights, int y, int x) {
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int channel = 0; channel < problem::in_channels; ++channel) {
    for (int ky = 0; ky < problem::kernel; ++ky) {
      const int in_y = y * problem::stride - problem::padding + ky;
      if (in_y < 0 || in_y >= problem::height) continue;
      const float* row = image + (channel * problem::height + in_y) * problem::width;
      for (int kx = 0; kx < problem::kernel; ++kx) {
        const int in_x = x * problem::stride - problem::padding + kx;
        if (in_x < 0 || in_x >= problem::width) continue;
        const float value = row[in_x];
        const float4 w = weights[(channel * problem::kernel + ky) * problem::kernel + kx];
        sum.x = fmaf(value, w.x, sum.x);
        sum.y = fmaf(value, w.y, sum.y);
        sum.z = fmaf(value, w.z, sum.z);
        sum.w = fmaf(value, w.w, sum.w);
      }
    }
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    convolve_pool(const float* __restrict__ input, const float* __restrict__ weight,
                  const float* __restrict__ bias, float* __restrict__ output) {
  __shared__ float4 weights[depth];
  __shared__ float convolved[together][tile];
  const int first_pooled_row = blockIdx.x * pooled_rows;
  const int first_filter = blockIdx.y * together;
  const int image = blockIdx.z;

  for (int i = threadIdx.x; i < depth; i += blockDim.x) {
    const float* own = weight + first_filter * depth + i;
    weights[i] = make_float4(own[0], own[depth], own[2 * depth], own[3 * depth]);
  }
  __syncthreads();

  const float* in = input + image * problem::in_channels * problem::height * problem::width;
  for (int i = threadIdx.x; i < tile; i += blockDim.x) {
    const int y = first_pooled_row * problem::pool_stride + i / problem::out_width;
    const float4 sum = convolve(in, weights, y, i % problem::out_width);
    convolved[0][i] = sum.x;
    convolved[1][i] = sum.y;
    convolved[2][i] = sum.z;
    convolved[3][i] = sum.w;
  }
  __syncthreads();

  for (int i = threadIdx.x; i < together * pooled_tile; i += blockDim.x) {
    const int f = i / pooled_tile;
    const int row = i % pooled_tile / problem::pooled_width;
    const int column = i % problem::pooled_width;
    const float* window = convolved[f] + row * problem::pool_stride * problem::out_width +
                          column * problem::pool_stride;
    float largest = window[0];
    for (int dy = 0; dy < problem::pool_kernel; ++dy) {
      for (int dx = 0; dx < problem::pool_kernel; ++dx) {
        largest = fmaxf(largest, window[dy * problem::out_width + dx]);
      }
    }
    // The bias keeps the order, so it follows the maximum.
    const int filter = first_filter + f;
    const int to =
        ((image * problem::filters + filter) * problem::pooled_height + first_pooled_row + row) *
            problem::pooled_width +
        column;
    output[to] = fmaxf(largest + bias[filter], 0.0f);
  }
}
