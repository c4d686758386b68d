// A thread makes one pixel of eight filters of the convolution and folds it into the windows of the
// pooling that contain it. Floats that are not negative are in the order of their bits as integers,
// and the maximum does not depend on who comes first.

#include "problem.h"

namespace {

constexpr int together = 8;
constexpr int depth = problem::in_channels * problem::kernel * problem::kernel;
constexpr int plane = problem::out_height * problem::out_width;
constexpr int pixels = problem::batch * plane;
static_assert(problem::filters % together == 0, "whole groups of filters");

/// The windows of the pooling, along one axis, that contain a row or column of the convolution.
__device__ int first_window(int at) { return at < 2 ? 0 : (at - 1) / 2; }
__device__ int last_window(int at, int windows) { return min(at / 2, windows - 1); }
static_assert(problem::pool_kernel == 3 && problem::pool_stride == 2, "as the two functions say");

}  // namespace

extern "C" __global__ void clear(float* output) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < problem::output_elements;
       i += gridDim.x * blockDim.x) {
    output[i] = 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    convolve_pool(const float* __restrict__ input, const float* __restrict__ weight,
                  const float* __restrict__ bias, int* __restrict__ output) {
  __shared__ float weights[depth][together];
  const int first_filter = blockIdx.y * together;
  for (int i = threadIdx.x; i < depth * together; i += blockDim.x) {
    weights[i / together][i % together] =
        weight[(first_filter + i % together) * depth + i / together];
  }
  __syncthreads();

  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  const int image = pixel / plane;
  const int top = pixel % plane / problem::out_width * problem::stride - problem::padding;
  const int left = pixel % problem::out_width * problem::stride - problem::padding;

  float sums[together] = {};
  for (int channel = 0; channel < problem::in_channels; ++channel) {
    const float* in =
        input + (image * problem::in_channels + channel) * problem::height * problem::width;
    for (int ky = 0; ky < problem::kernel; ++ky) {
      if (top + ky < 0 || top + ky >= problem::height) continue;
      for (int kx = 0; kx < problem::kernel; ++kx) {
        if (left + kx < 0 || left + kx >= problem::width) continue;
        const float value = in[(top + ky) * problem::width + left + kx];
        const float* taps = weights[(channel * problem::kernel + ky) * problem::kernel + kx];
#pragma unroll
        for (int f = 0; f < together; ++f) sums[f] = fmaf(value, taps[f], sums[f]);
      }
    }
  }
  const int y = pixel % plane / problem::out_width;
  const int x = pixel % problem::out_width;
  for (int f = 0; f < together; ++f) {
    const int filter = first_filter + f;
    const float value = sums[f] + bias[filter];
    if (!(value > 0.0f)) continue;
    const int pooled = (image * problem::filters + filter) * problem::pooled_height;
    for (int row = first_window(y); row <= last_window(y, problem::pooled_height); ++row) {
      for (int column = first_window(x); column <= last_window(x, problem::pooled_width);
           ++column) {
        atomicMax(output + (pooled + row) * problem::pooled_width + column, __float_as_int(value));
      }
    }
  }
}
