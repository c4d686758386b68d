// Maximum and sum of a row by atomics. blockIdx.y is the row; the blocks along x share it. The
// order of the additions changes from run to run, and with it the last bits of the results.

#include "problem.h"

namespace {

/// Unsigned integers in the order of the floats. 0, which the plan sets, lies before all of them.
__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float from_ordered(unsigned word) {
  return __uint_as_float((word & 0x80000000u) != 0 ? word & 0x7fffffffu : ~word);
}

template <class Function>
__device__ void for_each_column(Function function) {
  const long long row = 1ll * blockIdx.y * problem::columns;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < problem::columns;
       i += gridDim.x * blockDim.x) {
    function(row + i);
  }
}

}  // namespace

extern "C" __global__ void find_maxima(const float* x, unsigned* maxima) {
  unsigned largest = 0;
  for_each_column([&](long long i) { largest = max(largest, ordered(x[i])); });
  largest = __reduce_max_sync(0xffffffffu, largest);
  if (threadIdx.x % 32 == 0) atomicMax(maxima + blockIdx.y, largest);
}

extern "C" __global__ void add_exponentials(const float* x, const unsigned* maxima, float* sums) {
  const float maximum = from_ordered(maxima[blockIdx.y]);
  float sum = 0.0f;
  for_each_column([&](long long i) { sum += expf(x[i] - maximum); });
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(sums + blockIdx.y, sum);
}

extern "C" __global__ void write_results(const float* x, const unsigned* maxima, const float* sums,
                                         float* y) {
  const float maximum = from_ordered(maxima[blockIdx.y]);
  const float sum = sums[blockIdx.y];
  for_each_column([&](long long i) { y[i] = expf(x[i] - maximum) / sum; });
}
