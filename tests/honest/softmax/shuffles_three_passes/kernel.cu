// A block makes a row in three passes over it: maximum, sum, result.

#include "problem.h"

namespace {

constexpr int threads = 1024;
constexpr int warps = threads / 32;
static_assert(warps == 32, "one warp reduces what the warps found");

struct Maximum {
  static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
  static __device__ float combine(float a, float b) { return a + b; }
};

template <class Operation>
__device__ float reduce_warp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Operation::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

/// What all threads of the block hold, combined; every thread gets it.
template <class Operation>
__device__ float reduce_block(float value) {
  __shared__ float of_warp[warps];
  value = reduce_warp<Operation>(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  const float result = reduce_warp<Operation>(of_warp[threadIdx.x % 32]);
  __syncthreads();  // before the next reduction writes
  return result;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    softmax(const float* __restrict__ x, float* __restrict__ y) {
  const float* in = x + 1ll * blockIdx.x * problem::columns;
  float* out = y + 1ll * blockIdx.x * problem::columns;

  float own_maximum = in[threadIdx.x];
  for (int i = threadIdx.x; i < problem::columns; i += threads) {
    own_maximum = fmaxf(own_maximum, in[i]);
  }
  const float maximum = reduce_block<Maximum>(own_maximum);

  float own_sum = 0.0f;
  for (int i = threadIdx.x; i < problem::columns; i += threads) own_sum += expf(in[i] - maximum);
  const float sum = reduce_block<Sum>(own_sum);

  for (int i = threadIdx.x; i < problem::columns; i += threads) {
    out[i] = expf(in[i] - maximum) / sum;
  }
}
