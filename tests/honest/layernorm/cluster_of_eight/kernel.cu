// A cluster of eight blocks makes a row, an eighth each, in three passes: sums, squared distances
// from the mean, result.

#include <cooperative_groups.h>

#include "problem.h"

namespace {

constexpr int cluster_blocks = 8;
constexpr int threads = 1024;
constexpr int warps = threads / 32;
constexpr int slice_quads = problem::features / 4 / cluster_blocks;
static_assert(problem::features % (4 * cluster_blocks) == 0, "even slices");

/// The sum of one value of every thread of the cluster; every thread gets it. `of_block` is shared
/// memory that is used for nothing else.
__device__ double sum_over_cluster(double value, double* of_block) {
  __shared__ double of_warps[warps];
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    double block_sum = 0.0;
    for (int warp = 0; warp < warps; ++warp) block_sum += of_warps[warp];
    *of_block = block_sum;
  }
  cluster.sync();
  double sum = 0.0;
  for (int rank = 0; rank < cluster_blocks; ++rank) sum += *cluster.map_shared_rank(of_block, rank);
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    layernorm(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ y) {
  __shared__ double block_sum;
  __shared__ double block_squares;
  // Blocks of a cluster follow each other, and so do the slices of a row.
  const long long begin = 1ll * blockIdx.x * slice_quads;
  const int rank = blockIdx.x % cluster_blocks;
  const float4* in = reinterpret_cast<const float4*>(x) + begin;
  float4* out = reinterpret_cast<float4*>(y) + begin;
  const float4* weights = reinterpret_cast<const float4*>(weight) + rank * slice_quads;
  const float4* biases = reinterpret_cast<const float4*>(bias) + rank * slice_quads;

  double sum = 0.0;
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 v = in[i];
    sum += (static_cast<double>(v.x) + v.y) + (static_cast<double>(v.z) + v.w);
  }
  const float mean = static_cast<float>(sum_over_cluster(sum, &block_sum) / problem::features);

  float squares[4] = {};
  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 v = in[i];
    squares[0] += (v.x - mean) * (v.x - mean);
    squares[1] += (v.y - mean) * (v.y - mean);
    squares[2] += (v.z - mean) * (v.z - mean);
    squares[3] += (v.w - mean) * (v.w - mean);
  }
  const double own_squares = (static_cast<double>(squares[0]) + squares[1]) +
                             (static_cast<double>(squares[2]) + squares[3]);
  const double variance = sum_over_cluster(own_squares, &block_squares) / problem::features;
  const float factor = static_cast<float>(1.0 / sqrt(variance + problem::eps));

  for (int i = threadIdx.x; i < slice_quads; i += threads) {
    const float4 v = in[i];
    const float4 w = weights[i];
    const float4 b = biases[i];
    out[i] = make_float4((v.x - mean) * factor * w.x + b.x, (v.y - mean) * factor * w.y + b.y,
                         (v.z - mean) * factor * w.z + b.z, (v.w - mean) * factor * w.w + b.w);
  }
  // No block may leave while another can still read its shared memory.
  cooperative_groups::this_cluster().sync();
}
