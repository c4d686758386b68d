#include "problem.h"

// To the ten mantissa bits of TF32, to nearest.
__device__ float rounded(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}

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
