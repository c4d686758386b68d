// A thread makes one pixel of eight filters, whose weights lie in shared memory.

#include "problem.h"

namespace {

constexpr int together = 8;
constexpr int depth = problem::in_channels * problem::kernel * problem::kernel;
constexpr int plane = problem::out_height * problem::out_width;
constexpr int pixels = problem::batch * plane;
static_assert(problem::filters % together == 0, "whole groups of filters");

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    convolve(const float* __restrict__ input, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ output) {
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
#pragma unroll
  for (int f = 0; f < together; ++f) {
    const int filter = first_filter + f;
    output[(image * problem::filters + filter) * plane + pixel % plane] = sums[f] + bias[filter];
  }
}
