// One pass for the statistics: Welford's update in every thread, Chan's formula to merge.
// blockIdx.y is the row, blockIdx.x the slice of it.

#include "problem.h"

namespace {

constexpr int slices = 128;
constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::features / 4;
constexpr int slice_quads = row_quads / slices;
static_assert(row_quads % (slices * threads) == 0, "even slices");
static_assert(slices % 32 == 0, "as many slices for every lane");

/// Count, mean and sum of squared deviations from it.
struct Moments {
  float count;
  float mean;
  float squares;

  __device__ void add(float value) {
    count += 1.0f;
    const float before = value - mean;
    mean += before / count;
    squares += before * (value - mean);
  }

  __device__ void merge(const Moments& other) {
    const float total = count + other.count;
    const float difference = other.mean - mean;
    const float share = other.count / total;
    mean += difference * share;
    squares += other.squares + difference * difference * count * share;
    count = total;
  }
};

/// The moments of `lanes` neighbouring lanes, in the first of them.
template <int lanes>
__device__ Moments merge_lanes(Moments own) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, own.count, distance),
                           __shfl_down_sync(0xffffffffu, own.mean, distance),
                           __shfl_down_sync(0xffffffffu, own.squares, distance)};
    own.merge(other);
  }
  return own;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    find_moments(const float* __restrict__ x, Moments* __restrict__ slice_moments) {
  __shared__ Moments of_warps[warps];
  const float4* in =
      reinterpret_cast<const float4*>(x) + 1ll * blockIdx.y * row_quads + blockIdx.x * slice_quads;
  const int lane = threadIdx.x % 32;

  Moments own = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 quad = in[i];
    own.add(quad.x);
    own.add(quad.y);
    own.add(quad.z);
    own.add(quad.w);
  }
  own = merge_lanes<32>(own);
  if (lane == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const Moments of_block = merge_lanes<warps>(of_warps[lane % warps]);
  if (lane == 0) slice_moments[blockIdx.y * slices + blockIdx.x] = of_block;
}

extern "C" __global__ void __launch_bounds__(threads)
    normalise(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, const Moments* __restrict__ slice_moments,
              float* __restrict__ y) {
  __shared__ float shared_mean;
  __shared__ float shared_factor;
  if (threadIdx.x < 32) {
    Moments of_row = slice_moments[blockIdx.y * slices + threadIdx.x];
    for (int slice = threadIdx.x + 32; slice < slices; slice += 32) {
      of_row.merge(slice_moments[blockIdx.y * slices + slice]);
    }
    of_row = merge_lanes<32>(of_row);
    if (threadIdx.x == 0) {
      const float variance = of_row.squares / of_row.count;
      shared_mean = of_row.mean;
      shared_factor = 1.0f / sqrtf(variance + static_cast<float>(problem::eps));
    }
  }
  __syncthreads();
  const float mean = shared_mean;
  const float factor = shared_factor;

  const int first = blockIdx.x * slice_quads;
  const long long row = 1ll * blockIdx.y * row_quads;
  const float4* in = reinterpret_cast<const float4*>(x) + row + first;
  float4* out = reinterpret_cast<float4*>(y) + row + first;
  const float4* weights = reinterpret_cast<const float4*>(weight) + first;
  const float4* biases = reinterpret_cast<const float4*>(bias) + first;
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 v = in[i];
    const float4 w = weights[i];
    const float4 b = biases[i];
    out[i] = make_float4((v.x - mean) * factor * w.x + b.x, (v.y - mean) * factor * w.y + b.y,
                         (v.z - mean) * factor * w.z + b.z, (v.w - mean) * factor * w.w + b.w);
  }
}
