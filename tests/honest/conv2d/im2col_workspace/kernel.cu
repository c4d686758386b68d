// Image to columns, then a matrix product: filters x pixels of all images, over all taps.

#include "problem.h"

namespace {

constexpr int taps = problem::kernel * problem::kernel;
constexpr int depth = problem::in_channels * taps;
constexpr int plane = problem::out_height * problem::out_width;
constexpr int pixels = problem::batch * plane;
constexpr int tile = 32;
constexpr int rows_per_pass = 8;
static_assert(problem::filters % tile == 0, "whole tiles of filters");

/// Where each row of the matrix reads, relative to the first pixel under the filter.
struct TapTable {
  int channel[depth] = {};
  int y[depth] = {};
  int x[depth] = {};

  constexpr TapTable() {
    for (int l = 0; l < depth; ++l) {
      channel[l] = l / taps;
      y[l] = l % taps / problem::kernel - problem::padding;
      x[l] = l % problem::kernel - problem::padding;
    }
  }
};

__constant__ constexpr TapTable tap_table;

}  // namespace

/// blockIdx.y is the row of the matrix, a thread makes one column of it.
extern "C" __global__ void gather(const float* input, float* columns) {
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  const int l = blockIdx.y;
  const int image = pixel / plane;
  const int y = pixel % plane / problem::out_width * problem::stride + tap_table.y[l];
  const int x = pixel % problem::out_width * problem::stride + tap_table.x[l];
  const bool inside = y >= 0 && y < problem::height && x >= 0 && x < problem::width;
  const int row = (image * problem::in_channels + tap_table.channel[l]) * problem::height + y;
  columns[1ll * l * pixels + pixel] = inside ? input[row * problem::width + x] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(tile* rows_per_pass)
    multiply(const float* __restrict__ weight, const float* __restrict__ columns,
             const float* __restrict__ bias, float* __restrict__ output) {
  __shared__ float left[tile][tile + 1];
  __shared__ float right[tile][tile];
  const int pixel = blockIdx.x * tile + threadIdx.x;
  const int first_filter = blockIdx.y * tile;

  float sums[tile / rows_per_pass] = {};
  for (int start = 0; start < depth; start += tile) {
    for (int row = threadIdx.y; row < tile; row += rows_per_pass) {
      const int l = start + threadIdx.x;
      left[row][threadIdx.x] = l < depth ? weight[(first_filter + row) * depth + l] : 0.0f;
      const bool inside = start + row < depth && pixel < pixels;
      right[row][threadIdx.x] = inside ? columns[1ll * (start + row) * pixels + pixel] : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < tile; ++l) {
      for (int i = 0; i < tile / rows_per_pass; ++i) {
        sums[i] = fmaf(left[threadIdx.y + i * rows_per_pass][l], right[l][threadIdx.x], sums[i]);
      }
    }
    __syncthreads();
  }

  if (pixel >= pixels) return;
  for (int i = 0; i < tile / rows_per_pass; ++i) {
    const int filter = first_filter + threadIdx.y + i * rows_per_pass;
    output[(pixel / plane * problem::filters + filter) * plane + pixel % plane] =
        sums[i] + bias[filter];
  }
}
