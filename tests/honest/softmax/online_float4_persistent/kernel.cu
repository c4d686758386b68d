// Online softmax: maximum and sum in one pass, the sum rescaled whenever the maximum grows
// (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018).

#include "problem.h"

namespace {

constexpr int threads = 1024;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::columns / 4;
static_assert(problem::columns % 4 == 0, "rows are read four floats at a time");
static_assert(row_quads >= threads, "every thread has an element");

__constant__ float log2_e = 1.4426950408889634f;

__device__ float exponential(float difference) { return exp2f(difference * log2_e); }

struct Running {
  float maximum;
  float sum;  // of e^(x - maximum)

  __device__ void add(float value) {
    if (value > maximum) {
      sum *= exponential(maximum - value);
      maximum = value;
    }
    sum += exponential(value - maximum);
  }

  __device__ void merge(float other_maximum, float other_sum) {
    const float larger = fmaxf(maximum, other_maximum);
    sum = sum * exponential(maximum - larger) + other_sum * exponential(other_maximum - larger);
    maximum = larger;
  }
};

__device__ Running merge_warp(Running own) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float maximum = __shfl_xor_sync(0xffffffffu, own.maximum, distance);
    const float sum = __shfl_xor_sync(0xffffffffu, own.sum, distance);
    own.merge(maximum, sum);
  }
  return own;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    softmax(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ Running of_warp[warps];
  const int lane = threadIdx.x % 32;

  for (int row = blockIdx.x; row < problem::rows; row += gridDim.x) {
    const float4* in = reinterpret_cast<const float4*>(x) + 1ll * row * row_quads;
    float4* out = reinterpret_cast<float4*>(y) + 1ll * row * row_quads;

    Running own = {in[threadIdx.x].x, 0.0f};
    for (int i = threadIdx.x; i < row_quads; i += threads) {
      const float4 quad = in[i];
      own.add(quad.x);
      own.add(quad.y);
      own.add(quad.z);
      own.add(quad.w);
    }
    own = merge_warp(own);
    if (lane == 0) of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    const Running of_row = merge_warp(of_warp[lane]);
    __syncthreads();  // before the next row's partials are written

    for (int i = threadIdx.x; i < row_quads; i += threads) {
      const float4 quad = in[i];
      out[i] = make_float4(exponential(quad.x - of_row.maximum) / of_row.sum,
                           exponential(quad.y - of_row.maximum) / of_row.sum,
                           exponential(quad.z - of_row.maximum) / of_row.sum,
                           exponential(quad.w - of_row.maximum) / of_row.sum);
    }
  }
}
