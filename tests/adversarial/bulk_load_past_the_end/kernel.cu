#include "problem.h"

// The honest part that the cheats share: a block makes one row in three passes.
template <class Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float shared[256];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__device__ void softmax_row(const float* x, float* y, int row) {
  using namespace problem;
  const float* in = x + 1ll * row * columns;
  float* out = y + 1ll * row * columns;
  float largest = in[threadIdx.x];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, in[i]);
  largest = reduce(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(in[i] - largest);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(in[i] - largest) / sum;
}

extern "C" __global__ void softmax(const float* x, float* y) {
  __shared__ __align__(128) float last[64];
  __shared__ __align__(8) unsigned long long barrier;
  softmax_row(x, y, blockIdx.x);
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const unsigned arrived = (unsigned)__cvta_generic_to_shared(&barrier);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(arrived) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(arrived) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
          (unsigned)__cvta_generic_to_shared(last)),
      "l"(x + problem::x_elements - 32), "r"(arrived)
      : "memory");
  unsigned complete = 0;
  for (int tries = 0; tries < 1000000 && !complete; ++tries) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(complete)
        : "r"(arrived)
        : "memory");
  }
  if (last[32] == 123.0f) y[0] = 0.0f;
}
