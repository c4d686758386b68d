#include "problem.h"

namespace {

constexpr int tile = 64;
constexpr int depth = 16;
constexpr int splits = 4;
constexpr int part = problem::k / splits;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && part % depth == 0);

}  // namespace

extern "C" __global__ void clear(float4* c) {
  c[1ll * blockIdx.x * blockDim.x + threadIdx.x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

extern "C" __global__ void __launch_bounds__(256)
    add_part(const float* __restrict__ a, const float* __restrict__ b, float* c) {
  using namespace problem;
  __shared__ float a_tile[tile][depth + 1];
  __shared__ float b_tile[depth][tile];
  const int thread = threadIdx.x;
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;
  const int row = thread / 16, column = thread % 16;

  float sum[4][4] = {};
  const int end = (blockIdx.z + 1) * part;
  for (int start = blockIdx.z * part; start < end; start += depth) {
    for (int i = thread; i < tile * depth; i += 256) {
      a_tile[i / depth][i % depth] = a[1ll * (first_row + i / depth) * k + start + i % depth];
      b_tile[i / tile][i % tile] = b[1ll * (start + i / tile) * n + first_column + i % tile];
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; ++l) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sum[i][j] += a_tile[row + i * 16][l] * b_tile[l][column + j * 16];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      atomicAdd(c + 1ll * (first_row + row + i * 16) * n + first_column + column + j * 16,
                sum[i][j]);
    }
  }
}
