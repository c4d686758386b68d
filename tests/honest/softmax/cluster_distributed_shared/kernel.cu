// A cluster of four blocks holds a row in shared memory, a quarter each. The blocks read each
// other's maxima and sums through distributed shared memory.

#include <cooperative_groups.h>

#include "problem.h"

namespace {

constexpr int cluster_blocks = 4;
constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int slice_columns = problem::columns / cluster_blocks;
constexpr int slice_quads = slice_columns / 4;
static_assert(slice_quads % threads == 0, "even slices");

/// Combines what `lanes` neighbouring lanes hold; every one of them gets the result.
template <int lanes, class Combine>
__device__ float reduce_lanes(float value, Combine combine) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

/// Combines a value of every thread of the cluster. `of_warp` and `of_block` are shared memory that
/// nobody else uses; every thread gets the result.
template <class Combine>
__device__ float reduce_cluster(float value, float* of_warp, float* of_block, Combine combine) {
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  value = reduce_lanes<32>(value, combine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    const float block_value = reduce_lanes<warps>(of_warp[threadIdx.x % warps], combine);
    if (threadIdx.x == 0) *of_block = block_value;
  }
  cluster.sync();
  float result = *cluster.map_shared_rank(of_block, 0);
  for (int rank = 1; rank < cluster_blocks; ++rank) {
    result = combine(result, *cluster.map_shared_rank(of_block, rank));
  }
  return result;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    softmax(const float* __restrict__ x, float* __restrict__ y) {
  extern __shared__ float4 slice[];  // a thread touches its own quads only
  __shared__ float warp_maxima[warps];
  __shared__ float warp_sums[warps];
  __shared__ float block_maximum;
  __shared__ float block_sum;

  // Blocks of a cluster follow each other, and so do the slices of a row.
  const float4* in = reinterpret_cast<const float4*>(x) + 1ll * blockIdx.x * slice_quads;
  float4* out = reinterpret_cast<float4*>(y) + 1ll * blockIdx.x * slice_quads;

  float own_maximum = in[threadIdx.x].x;
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 quad = in[i];
    slice[i] = quad;
    own_maximum = fmaxf(own_maximum, fmaxf(fmaxf(quad.x, quad.y), fmaxf(quad.z, quad.w)));
  }
  const float maximum = reduce_cluster(own_maximum, warp_maxima, &block_maximum,
                                       [](float a, float b) { return fmaxf(a, b); });

  float own_sum = 0.0f;
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    float4 quad = slice[i];
    quad.x = expf(quad.x - maximum);
    quad.y = expf(quad.y - maximum);
    quad.z = expf(quad.z - maximum);
    quad.w = expf(quad.w - maximum);
    slice[i] = quad;
    own_sum += (quad.x + quad.y) + (quad.z + quad.w);
  }
  const float sum =
      reduce_cluster(own_sum, warp_sums, &block_sum, [](float a, float b) { return a + b; });

  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 quad = slice[i];
    out[i] = make_float4(quad.x / sum, quad.y / sum, quad.z / sum, quad.w / sum);
  }
  // No block may leave while another can still read its shared memory.
  cooperative_groups::this_cluster().sync();
}
