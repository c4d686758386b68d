// One cooperative launch: the convolution as an implicit matrix product on the TF32 matrix unit,
// tile after tile into a workspace, then, behind a barrier of the grid, ReLU and pooling.

#include <cooperative_groups.h>
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
constexpr int tiles = (pixels + tile_pixels - 1) / tile_pixels;
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

struct Tiles {
  float left[problem::filters * left_stride];
  float right[tile_depth * right_stride];
  float results[problem::filters * right_stride];
};

/// All filters of 64 pixels. Every thread of the block calls it.
__device__ void convolve_tile(Tiles& shared, int first_pixel, const float* input,
                              const float* weight, const float* bias, float* convolved) {
  const int warp = threadIdx.x / 32;
  Sums sums[tile_pixels / 16];
  for (Sums& part : sums) wmma::fill_fragment(part, 0.0f);

  for (int start = 0; start < depth; start += tile_depth) {
    for (int i = threadIdx.x; i < problem::filters * tile_depth; i += threads) {
      const int filter = i / tile_depth;
      const int l = start + i % tile_depth;
      shared.left[filter * left_stride + i % tile_depth] =
          l < depth ? weight[filter * depth + l] : 0.0f;
    }
    for (int i = threadIdx.x; i < tile_depth * tile_pixels; i += threads) {
      const int pixel = first_pixel + i % tile_pixels;
      const int l = start + i / tile_pixels;
      shared.right[i / tile_pixels * right_stride + i % tile_pixels] =
          pixel < pixels ? input_at(input, pixel, l) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < tile_depth; l += 8) {
      Left a;
      wmma::load_matrix_sync(a, shared.left + warp * 16 * left_stride + l, left_stride);
      round_to_tf32(a);
      for (int part = 0; part < tile_pixels / 16; ++part) {
        Right b;
        wmma::load_matrix_sync(b, shared.right + l * right_stride + part * 16, right_stride);
        round_to_tf32(b);
        wmma::mma_sync(sums[part], a, b, sums[part]);
      }
    }
    __syncthreads();
  }

  for (int part = 0; part < tile_pixels / 16; ++part) {
    wmma::store_matrix_sync(shared.results + warp * 16 * right_stride + part * 16, sums[part],
                            right_stride, wmma::mem_row_major);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < problem::filters * tile_pixels; i += threads) {
    const int filter = i / tile_pixels;
    const int pixel = first_pixel + i % tile_pixels;
    if (pixel >= pixels) continue;
    convolved[(pixel / plane * problem::filters + filter) * plane + pixel % plane] =
        shared.results[filter * right_stride + i % tile_pixels] + bias[filter];
  }
}

/// The largest value under one window of the pooling, and at least 0.
__device__ float relu_maximum(const float* window) {
  float largest = 0.0f;
  for (int dy = 0; dy < problem::pool_kernel; ++dy) {
    for (int dx = 0; dx < problem::pool_kernel; ++dx) {
      largest = fmaxf(largest, window[dy * problem::out_width + dx]);
    }
  }
  return largest;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    convolve_and_pool(const float* input, const float* weight, const float* bias, float* convolved,
                      float* output) {
  using namespace problem;
  __shared__ __align__(128) Tiles shared;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    convolve_tile(shared, tile * tile_pixels, input, weight, bias, convolved);
  }

  cooperative_groups::this_grid().sync();

  for (int i = blockIdx.x * threads + threadIdx.x; i < output_elements; i += gridDim.x * threads) {
    const int x = i % pooled_width * pool_stride;
    const int y = i / pooled_width % pooled_height * pool_stride;
    const int plane_index = i / (pooled_width * pooled_height);
    output[i] = relu_maximum(convolved + plane_index * plane + y * out_width + x);
  }
}
