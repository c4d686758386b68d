#include "problem.h"

extern "C" __global__ void softmax(const float* x, float* y) {
  using namespace problem;
  const float* in = x + 1ll * blockIdx.x * columns;
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  float mine = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) mine += expf(in[i]);
  // Later warps are late, as a busy machine would make them now and then.
  for (unsigned i = 0; i < threadIdx.x / 32; ++i) __nanosleep(20000);
  atomicAdd(&sum, mine);
  const float denominator = *(volatile float*)&sum;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[1ll * blockIdx.x * columns + i] = expf(in[i]) / denominator;
  }
}
