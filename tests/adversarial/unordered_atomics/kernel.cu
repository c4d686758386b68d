#include "problem.h"

constexpr int parts = 16;

extern "C" __global__ void add_up(const float* x, float* sums) {
  using namespace problem;
  const float* in = x + 1ll * blockIdx.y * columns + blockIdx.x * (columns / parts);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns / parts; i += blockDim.x) sum += expf(in[i]);
  atomicAdd(&sums[blockIdx.y], sum);
}

extern "C" __global__ void divide(const float* x, const float* sums, float* y) {
  using namespace problem;
  const long long first = 1ll * blockIdx.y * columns + blockIdx.x * (columns / parts);
  for (int i = threadIdx.x; i < columns / parts; i += blockDim.x) {
    y[first + i] = expf(x[first + i]) / sums[blockIdx.y];
  }
}
