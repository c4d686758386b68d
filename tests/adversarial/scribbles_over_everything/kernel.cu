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

extern "C" __global__ void softmax(const float* x, float* y) { softmax_row(x, y, blockIdx.x); }

__device__ void scribble(u64 begin, u64 bytes) {
  const u64 step = 8ull * gridDim.x * blockDim.x;
  for (u64 at = 8ull * (blockIdx.x * blockDim.x + threadIdx.x); at < bytes; at += step) {
    *(volatile u64*)(begin + at) = ~0ull;
  }
}

extern "C" __global__ void scribble_all(const __grid_constant__ Ignored parameter) {
  const u64 parameters = address_of(parameter);
  const u64 code = *(volatile u64*)(parameters - PARAMETER_OFFSET + CODE_OFFSET);
  scribble(EVENT_SLOTS, SLOT_BYTES);
  scribble(PROGRESS_SLOTS, SLOT_BYTES);
  scribble(COMMANDS, COMMAND_BYTES);
  scribble(parameters & ~0x1fffffull, 0x200000);
  if (code >> 44 == 7) scribble(code & ~0xffffull, 0x10000);
}
