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

extern "C" __global__ void softmax(const float* x, float* y) { softmax_row(x, y, blockIdx.x); }

// A second kernel, whose name has 2^20 letters.
#define TWICE(name) TWICE_AGAIN(name, name)
#define TWICE_AGAIN(a, b) a##b
#define SIXTEEN a234567890123456
#define LONG_1 TWICE(SIXTEEN)
#define LONG_2 TWICE(LONG_1)
#define LONG_3 TWICE(LONG_2)
#define LONG_4 TWICE(LONG_3)
#define LONG_5 TWICE(LONG_4)
#define LONG_6 TWICE(LONG_5)
#define LONG_7 TWICE(LONG_6)
#define LONG_8 TWICE(LONG_7)
#define LONG_9 TWICE(LONG_8)
#define LONG_10 TWICE(LONG_9)
#define LONG_11 TWICE(LONG_10)
#define LONG_12 TWICE(LONG_11)
#define LONG_13 TWICE(LONG_12)
#define LONG_14 TWICE(LONG_13)
#define LONG_15 TWICE(LONG_14)
#define LONG_16 TWICE(LONG_15)

extern "C" __global__ void LONG_16() {}
