#include <cooperative_groups.h>
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

constexpr int splits = 2;
constexpr int part = problem::k / splits;
constexpr int tiles_n = problem::n / tile;
constexpr int tiles = problem::m / tile * tiles_n;
constexpr long long elements = 1ll * problem::m * problem::n;
static_assert(part % depth == 0);

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    matmul(const __half* __restrict__ a, const __half* __restrict__ b, float* parts,
           __half2* __restrict__ c) {
  using namespace problem;
  __shared__ __align__(32) Shared shared;
  const int warp = threadIdx.x / 32;
  for (int item = blockIdx.x; item < tiles * splits; item += gridDim.x) {
    const int split = item / tiles, index = item % tiles;
    const int first_row = index / tiles_n * tile, first_column = index % tiles_n * tile;
    Sum sum[2][2];
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    multiply_tile(sum, shared, a + 1ll * first_row * k + split * part,
                  b + 1ll * split * part * n + first_column, part);
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        const long long row = first_row + warp / 2 * 32 + i * 16;
        const int column = first_column + warp % 2 * 32 + j * 16;
        wmma::store_matrix_sync(parts + split * elements + row * n + column, sum[i][j], n,
                                wmma::mem_row_major);
      }
    }
  }
  cooperative_groups::this_grid().sync();
  const float2* pairs = reinterpret_cast<const float2*>(parts);
  const long long step = 1ll * gridDim.x * blockDim.x;
  for (long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x; i < elements / 2; i += step) {
    const float2 first = pairs[i], second = pairs[elements / 2 + i];
    c[i] = __floats2half2_rn(first.x + second.x, first.y + second.y);
  }
}
