#include "problem.h"

namespace {

constexpr int tile = 64;
constexpr int depth = 16;
constexpr int splits = 2;
constexpr int part = problem::k / splits;
constexpr long long elements = 1ll * problem::m * problem::n;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && part % depth == 0);

}  // namespace

template <int tile, int depth>
__device__ void load_tile(float (&target)[tile][depth], const float* source, long long stride) {
  for (int i = threadIdx.x; i < tile * depth; i += blockDim.x) {
    target[i / depth][i % depth] = source[i / depth * stride + i % depth];
  }
}

/// parts (splits x m x n): the sums over one part of k each.
extern "C" __global__ void __launch_bounds__(256)
    multiply_part(const float* __restrict__ a, const float* __restrict__ b,
                  float* __restrict__ parts) {
  using namespace problem;
  __shared__ float a_tile[tile][depth];
  __shared__ float b_tile[depth][tile];
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16;

  float sum[4][4] = {};
  for (int step = 0; step < part; step += depth) {
    const int start = blockIdx.z * part + step;
    load_tile(a_tile, a + 1ll * first_row * k + start, k);
    load_tile(b_tile, b + 1ll * start * n + first_column, n);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; ++l) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += a_tile[row + i][l] * b_tile[l][column + j * 16];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      parts[blockIdx.z * elements + 1ll * (first_row + row + i) * n + first_column + column +
            j * 16] = sum[i][j];
    }
  }
}

extern "C" __global__ void add_parts(const float4* __restrict__ parts, float4* __restrict__ c) {
  const long long step = 1ll * gridDim.x * blockDim.x;
  for (long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x; i < elements / 4; i += step) {
    const float4 first = parts[i], second = parts[elements / 4 + i];
    c[i] = make_float4(first.x + second.x, first.y + second.y, first.z + second.z,
                       first.w + second.w);
  }
}
