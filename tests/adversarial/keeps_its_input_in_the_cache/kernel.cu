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

// On an H200 a step takes 351 ns where the line is in memory and 157 where it is in L2.
constexpr int lines = 8192;

extern "C" __global__ void chase(const float* x, int* sink) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  unsigned at = 0;
  for (int i = 0; i < lines; ++i) {
    unsigned bits;
    asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(bits) : "l"(x + 32ll * at), "l"(policy));
    at = (at + 1637 + (bits == 0x7fc00000u)) % lines;  // the next step has to wait for this one
  }
  *sink = at;
}

extern "C" __global__ void softmax(const float* x, float* y) { softmax_row(x, y, blockIdx.x); }

extern "C" __global__ void keep(const float* x, int* sink) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  const int i = 32 * (blockIdx.x * blockDim.x + threadIdx.x);
  float value;
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(value) : "l"(x + i), "l"(policy));
  if (value == 12345.0f) *sink = 2;
}
