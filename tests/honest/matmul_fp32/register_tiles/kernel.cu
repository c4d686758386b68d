#include "problem.h"

namespace {

constexpr int tile = 128;
constexpr int depth = 8;
constexpr int per_thread = 8;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && problem::k % depth == 0);

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  using namespace problem;
  __shared__ float a_tile[depth][tile + 4];
  __shared__ __align__(16) float b_tile[depth][tile];
  const int thread = threadIdx.x;
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;
  const int row = thread / 16 * per_thread, column = thread % 16 * per_thread;
  const int a_row = thread / 2, a_depth = thread % 2 * 4;
  const int b_depth = thread / 32, b_column = thread % 32 * 4;

  float sum[per_thread][per_thread] = {};
  for (int start = 0; start < k; start += depth) {
    const float4 from_a = *reinterpret_cast<const float4*>(
        a + 1ll * (first_row + a_row) * k + start + a_depth);
    const float4 from_b = *reinterpret_cast<const float4*>(
        b + 1ll * (start + b_depth) * n + first_column + b_column);
    __syncthreads();
    a_tile[a_depth][a_row] = from_a.x;
    a_tile[a_depth + 1][a_row] = from_a.y;
    a_tile[a_depth + 2][a_row] = from_a.z;
    a_tile[a_depth + 3][a_row] = from_a.w;
    *reinterpret_cast<float4*>(&b_tile[b_depth][b_column]) = from_b;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; ++l) {
      float left[per_thread], right[per_thread];
#pragma unroll
      for (int i = 0; i < per_thread; ++i) left[i] = a_tile[l][row + i];
#pragma unroll
      for (int j = 0; j < per_thread; ++j) right[j] = b_tile[l][column + j];
#pragma unroll
      for (int i = 0; i < per_thread; ++i) {
#pragma unroll
        for (int j = 0; j < per_thread; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
#pragma unroll
    for (int j = 0; j < per_thread; j += 4) {
      *reinterpret_cast<float4*>(c + 1ll * (first_row + row + i) * n + first_column + column + j) =
          make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
    }
  }
}
