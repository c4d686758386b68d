#include "problem.h"

// A thread makes one element of c. One FP32 sum from the first product to the last.
extern "C" __global__ void matmul(const float* a, const float* b, float* c) {
  using namespace problem;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[1ll * row * k + i] * b[1ll * i * n + column];
  c[1ll * row * n + column] = sum;
}
