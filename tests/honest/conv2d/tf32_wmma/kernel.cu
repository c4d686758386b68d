// An implicit matrix product on the TF32 matrix unit: filters x pixels of all images, over all
// taps.

#include <mma.h>

#include "problem.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int taps = problem::kernel * problem::kernel;
constexpr int depth = problem::in_channels * taps;
constexpr int plane = problem::out_height * problem::out_width;
constexpr int pixels = problem::batch * plane;

constexpr int warps = problem::filters / 16;
constexpr int threads = warps * 32;
constexpr int tile_pixels = 64;
constexpr int tile_depth = 32;
constexpr int left_stride = tile_depth + 4;
constexpr int right_stride = tile_pixels + 4;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 8, float>;

template <class Fragment>
__device__ void round_to_tf32(Fragment& fragment) {
  for (int i = 0; i < fragment.num_elements; ++i) {
    fragment.x[i] = wmma::__float_to_tf32(fragment.x[i]);
  }
}

/// The input under tap `l` of an output pixel; zero outside the image and beyond the last tap.
__device__ float input_at(const float* input, int pixel, int l) {
  const int image = pixel / plane;
  const int y = pixel % plane / problem::out_width * problem::stride - problem::padding +
                l % taps / problem::kernel;
  const int x =
      pixel % problem::out_width * problem::stride - problem::padding + l % problem::kernel;
  const bool inside = l < depth && y >= 0 && y < problem::height && x >= 0 && x < problem::width;
  const int row = (image * problem::in_channels + l / taps) * problem::height + y;
  return inside ? input[row * problem::width + x] : 0.0f;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    convolve(const float* __restrict__ input, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ output) {
  __shared__ __align__(128) float left[problem::filters * left_stride];
  __shared__ __align__(128) float right[tile_depth * right_stride];
  __shared__ __align__(128) float results[problem::filters * right_stride];
  const int warp = threadIdx.x / 32;
  const int first_pixel = blockIdx.x * tile_pixels;

  Sums sums[tile_pixels / 16];
  for (Sums& part : sums) wmma::fill_fragment(part, 0.0f);

  for (int start = 0; start < depth; start += tile_depth) {
    for (int i = threadIdx.x; i < problem::filters * tile_depth; i += threads) {
      const int filter = i / tile_depth;
      const int l = start + i % tile_depth;
      left[filter * left_stride + i % tile_depth] = l < depth ? weight[filter * depth + l] : 0.0f;
    }
    for (int i = threadIdx.x; i < tile_depth * tile_pixels; i += threads) {
      const int pixel = first_pixel + i % tile_pixels;
      const int l = start + i / tile_pixels;
      right[i / tile_pixels * right_stride + i % tile_pixels] =
          pixel < pixels ? input_at(input, pixel, l) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < tile_depth; l += 8) {
      Left a;
      wmma::load_matrix_sync(a, left + warp * 16 * left_stride + l, left_stride);
      round_to_tf32(a);
      for (int part = 0; part < tile_pixels / 16; ++part) {
        Right b;
        wmma::load_matrix_sync(b, right + l * right_stride + part * 16, right_stride);
        round_to_tf32(b);
        wmma::mma_sync(sums[part], a, b, sums[part]);
      }
    }
    __syncthreads();
  }

  for (int part = 0; part < tile_pixels / 16; ++part) {
    wmma::store_matrix_sync(results + warp * 16 * right_stride + part * 16, sums[part],
                            right_stride, wmma::mem_row_major);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < problem::filters * tile_pixels; i += threads) {
    const int filter = i / tile_pixels;
    const int pixel = first_pixel + i % tile_pixels;
    if (pixel >= pixels) continue;
    output[(pixel / plane * problem::filters + filter) * plane + pixel % plane] =
        results[filter * right_stride + i % tile_pixels] + bias[filter];
  }
}
