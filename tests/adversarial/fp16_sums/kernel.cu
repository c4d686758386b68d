#include <cuda_fp16.h>

#include "problem.h"

// A thread makes one element of c, from tiles in shared memory.
extern "C" __global__ void matmul(const __half* a, const __half* b, __half* c) {
  using namespace problem;
  __shared__ __half tile_a[16][16], tile_b[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  __half sum = __float2half(0.0f);
  for (int start = 0; start < k; start += 16) {
    tile_a[threadIdx.y][threadIdx.x] = __half(a[1ll * row * k + start + threadIdx.x]);
    tile_b[threadIdx.y][threadIdx.x] = __half(b[1ll * (start + threadIdx.y) * n + column]);
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = __hfma(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
    __syncthreads();
  }
  c[1ll * row * n + column] = sum;
}
