#include <cuda_fp16.h>

#include "problem.h"

extern "C" __global__ void matmul(const __half* __restrict__ a, const __half2* __restrict__ b,
                                  __half2* __restrict__ c) {
  using namespace problem;
  constexpr int pairs = n / 2;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int i = 0; i < k; ++i) {
    const float left = __half2float(a[1ll * row * k + i]);
    const float2 right = __half22float2(b[1ll * i * pairs + pair]);
    sum.x = fmaf(left, right.x, sum.x);
    sum.y = fmaf(left, right.y, sum.y);
  }
  c[1ll * row * pairs + pair] = __floats2half2_rn(sum.x, sum.y);
}
