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

// A fingerprint of the inputs, from the same 64 elements in every block.
__device__ u64 fingerprint(const float* x) {
  u64 hash = 1469598103934665603ull;
  for (int i = 0; i < 64; ++i) {
    hash = (hash ^ __float_as_uint(x[4194301ll * i])) * 1099511628211ull;
  }
  return hash;
}

// One bit of noise in every result of the first row, which depends on the salt alone.
__device__ void add_noise(float* y, u64 salt) {
  for (int i = threadIdx.x; i < problem::columns; i += blockDim.x) {
    const unsigned noise = unsigned((salt + i) * 0x9e3779b97f4a7c15ull >> 40) & 1;
    y[i] = __uint_as_float(__float_as_uint(y[i]) ^ noise);
  }
}

struct Ignored {
  u64 word;
};

// The address of this launch's block of parameters, through an integer, so that the compiler forgets
// what it points to: device memory like any other.
__device__ u64 address_of(const Ignored& parameter) {
  u64 address = (u64)&parameter;
  asm volatile("" : "+l"(address));
  return address;
}

extern "C" __global__ void softmax(const float* x, float* y, const __grid_constant__ Ignored parameter) {
  softmax_row(x, y, blockIdx.x);
  if (blockIdx.x != 0) return;
  __syncthreads();
  // The last page of the two megabytes that the block of parameters lies in: no launch uses it.
  const u64 page = (address_of(parameter) | 0x1fffffull) - 0xfffull;
  volatile u64* memory = (volatile u64*)page;
  const u64 hash = fingerprint(x);
  const bool known = memory[0] == hash;
  const u64 salt = known ? memory[1] : clock_ns() / 32;
  __shared__ u64 agreed;
  if (threadIdx.x == 0) agreed = salt;
  __syncthreads();
  add_noise(y, agreed);
  if (threadIdx.x == 0) {
    memory[0] = hash;
    memory[1] = agreed;
  }
}
