// Sixteen blocks share a row: blockIdx.x is the slice, blockIdx.y the row. The first launch leaves
// a maximum and a sum for every slice, the second merges those of its row and writes the result.

#include "problem.h"

namespace {

constexpr int slices = 16;
constexpr int threads = 256;
constexpr int slice_columns = problem::columns / slices;
static_assert(problem::columns % (slices * threads) == 0, "even slices");

/// Combines a value of every thread in a tree in shared memory; every thread gets the result.
template <class Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float shared[threads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__device__ long long slice_begin() {
  return 1ll * blockIdx.y * problem::columns + blockIdx.x * slice_columns;
}

}  // namespace

extern "C" __global__ void reduce_slices(const float* x, float2* partials) {
  const float* in = x + slice_begin();
  float maximum = in[threadIdx.x];
  for (int i = threadIdx.x; i < slice_columns; i += threads) maximum = fmaxf(maximum, in[i]);
  maximum = reduce(maximum, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0f;
  for (int i = threadIdx.x; i < slice_columns; i += threads) sum += expf(in[i] - maximum);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) partials[blockIdx.y * slices + blockIdx.x] = make_float2(maximum, sum);
}

extern "C" __global__ void write_slices(const float* x, const float2* partials, float* y) {
  const float2* of_row = partials + blockIdx.y * slices;
  float maximum = of_row[0].x;
  for (int slice = 1; slice < slices; ++slice) maximum = fmaxf(maximum, of_row[slice].x);
  float sum = 0.0f;
  for (int slice = 0; slice < slices; ++slice) {
    sum += of_row[slice].y * expf(of_row[slice].x - maximum);
  }
  const float* in = x + slice_begin();
  float* out = y + slice_begin();
  for (int i = threadIdx.x; i < slice_columns; i += threads) out[i] = expf(in[i] - maximum) / sum;
}
