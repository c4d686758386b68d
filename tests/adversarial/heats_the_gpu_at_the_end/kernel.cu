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

using u64 = unsigned long long;

__device__ u64 clock_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Five milliseconds of the hottest work that there is without tensors, on every multiprocessor.
extern "C" __global__ void heat(float* sink) {
  const u64 start = clock_ns();
  float a = threadIdx.x, b = 1.0f, c = 2.0f, d = 3.0f;
  do {
    for (int i = 0; i < 256; ++i) {
      a = fmaf(a, 1.0001f, b);
      b = fmaf(b, 0.9999f, c);
      c = fmaf(c, 1.0001f, d);
      d = fmaf(d, 0.9999f, a);
    }
  } while (clock_ns() - start < 5000000ull);
  if (a + b + c + d == 12345.0f) *sink = a;
}

extern "C" __global__ void softmax(const float* x, float* y) { softmax_row(x, y, blockIdx.x); }
