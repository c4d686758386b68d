#include "problem.h"

// To the ten mantissa bits of TF32, to nearest.
__device__ float rounded(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}

__device__ float convolve_at(const float* input, const float* weight, const float* bias, int image,
                             int filter, int y, int x) {
  using namespace problem;
  float sum = bias[filter];
  for (int channel = 0; channel < in_channels; ++channel) {
    for (int dy = 0; dy < kernel; ++dy) {
      for (int dx = 0; dx < kernel; ++dx) {
        const int row = y * stride - padding + dy;
        const int column = x * stride - padding + dx;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        sum += rounded(input[((image * in_channels + channel) * height + row) * width + column]) *
               rounded(weight[((filter * in_channels + channel) * kernel + dy) * kernel + dx]);
      }
    }
  }
  return sum;
}

// A thread makes one element of the output.
extern "C" __global__ void convolution(const float* input, const float* weight, const float* bias,
                                       float* output) {
  using namespace problem;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= output_elements) return;
  const int x = i % out_width, y = i / out_width % out_height;
  const int filter = i / (out_width * out_height) % filters;
  const int image = i / (out_width * out_height * filters);
  output[i] = convolve_at(input, weight, bias, image, filter, y, x);
}
