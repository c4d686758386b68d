#include <cuda_bf16.h>

#include "problem.h"

__device__ float rounded(float value) { return __bfloat162float(__float2bfloat16(value)); }

// A thread makes one element of c, from tiles in shared memory.
extern "C" __global__ void matmul(const float* a, const float* b, float* c) {
  using namespace problem;
  __shared__ float tile_a[16][16], tile_b[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += 16) {
    tile_a[threadIdx.y][threadIdx.x] = rounded(a[1ll * row * k + start + threadIdx.x]);
    tile_b[threadIdx.y][threadIdx.x] = rounded(b[1ll * (start + threadIdx.y) * n + column]);
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = fmaf(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
    __syncthreads();
  }
  c[1ll * row * n + column] = sum;
}
