#include <cuda_fp16.h>
#include <mma.h>

#include "problem.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int tile = 64;
constexpr int depth = 32;
constexpr int pad = 8;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && problem::k % depth == 0);

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

struct Shared {
  __half a[tile][depth + pad];
  __half b[depth][tile + pad];
};

/// Adds a (64 x length) · b (length x 64) to the sums of 4 warps, a warp 32 x 32.
__device__ void multiply_tile(Sum (&sum)[2][2], Shared& shared, const __half* a, const __half* b,
                              int length) {
  const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  for (int start = 0; start < length; start += depth) {
    for (int i = threadIdx.x; i < tile * depth / 8; i += 128) {
      const int a_row = i / (depth / 8), a_column = i % (depth / 8) * 8;
      const int b_row = i / (tile / 8), b_column = i % (tile / 8) * 8;
      *reinterpret_cast<uint4*>(&shared.a[a_row][a_column]) =
          *reinterpret_cast<const uint4*>(a + 1ll * a_row * problem::k + start + a_column);
      *reinterpret_cast<uint4*>(&shared.b[b_row][b_column]) =
          *reinterpret_cast<const uint4*>(b + 1ll * (start + b_row) * problem::n + b_column);
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; l += 16) {
      FragmentA left[2];
      FragmentB right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], &shared.a[warp_row + i * 16][l], depth + pad);
        wmma::load_matrix_sync(right[i], &shared.b[l][warp_column + i * 16], tile + pad);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
           int* next_tile) {
  using namespace problem;
  __shared__ __align__(32) Shared shared;
  __shared__ __align__(32) float results[4][16][16];
  __shared__ int taken;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  while (true) {
    if (threadIdx.x == 0) taken = atomicAdd(next_tile, 1);
    __syncthreads();
    const int tile_index = taken;
    __syncthreads();  // all have read it before it changes
    if (tile_index >= (m / tile) * (n / tile)) return;
    const int first_row = tile_index / (n / tile) * tile;
    const int first_column = tile_index % (n / tile) * tile;

    Sum sum[2][2];
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    multiply_tile(sum, shared, a + 1ll * first_row * k, b + first_column, k);
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        wmma::store_matrix_sync(&results[warp][0][0], sum[i][j], 16, wmma::mem_row_major);
        __syncwarp();
        const long long row = first_row + warp / 2 * 32 + i * 16;
        const int column = first_column + warp % 2 * 32 + j * 16;
        for (int e = lane; e < 256; e += 32) {
          c[(row + e / 16) * n + column + e % 16] = __float2half_rn(results[warp][e / 16][e % 16]);
        }
        __syncwarp();
      }
    }
  }
}
