// Softmax over rows of 65536 floats. A cluster of 2 blocks takes a row and holds it in registers from
// its one read to its one write; ordinary loads and stores, an ordinary grid, one cluster barrier. While
// a block computes, it has L2 fetch input of a block that comes about one wave later.

#include "problem.h"

namespace {

constexpr int cluster_blocks = CLUSTER;
constexpr int threads = THREADS;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::columns / 4;
constexpr int block_quads = row_quads / cluster_blocks;
constexpr int thread_quads = block_quads / threads;
constexpr int row_warps = cluster_blocks * warps;
constexpr int lane_partials = row_warps / 32;
static_assert(cluster_blocks * threads * thread_quads * 4 == problem::columns, "even slices");
// What L2 fetches ahead, a piece a warp.
constexpr int prefetched_quads = block_quads / PREFETCH_SHARE;
constexpr int piece_quads = 4096 / 16;
constexpr int pieces = prefetched_quads / piece_quads;
static_assert(pieces <= warps && pieces * piece_quads == prefetched_quads, "one piece a warp");
static_assert(row_warps % 32 == 0 && cluster_blocks <= 32, "whole partials a lane");

constexpr float log2_e = 1.4426950408889634f;
constexpr float lowest = -3.402823466e38f;

__device__ __forceinline__ float exp2_approximate(float exponent) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
}

/// e^(value - reference). Subtracts before it scales: with large inputs a product with log2(e)
/// would lose the difference.
__device__ __forceinline__ float exponential(float value, float reference) {
  return exp2_approximate((value - reference) * log2_e);
}

__device__ __forceinline__ float warp_maximum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

/// Asks L2 for this warp's piece of the slice of the block DISTANCE further on.
__device__ __forceinline__ void prefetch_ahead(const float* x, int warp, int lane) {
  const unsigned block = blockIdx.x + DISTANCE;
  if (lane != 0 || warp >= pieces || block >= gridDim.x) return;
  const float4* from = reinterpret_cast<const float4*>(x) +
                       static_cast<long long>(block) * block_quads + warp * piece_quads;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(piece_quads * 16)
               : "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, RESIDENT)
    softmax(const float* __restrict__ x, float* __restrict__ y) {
  // The (maximum, sum) of every warp of the cluster, in the order of the row.
  __shared__ __align__(16) float2 partials[row_warps];

  // First half of "every block of the cluster has started".
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const unsigned rank = blockIdx.x % cluster_blocks;

  // Slices follow each other in memory in the order of the blocks.
  const long long offset = static_cast<long long>(blockIdx.x) * block_quads + thread;
  const float4* from = reinterpret_cast<const float4*>(x) + offset;
  float4* to = reinterpret_cast<float4*>(y) + offset;

  float4 held[thread_quads];
#pragma unroll
  for (int q = 0; q < thread_quads; ++q) held[q] = from[q * threads];

  // The start keeps -infinity - (-infinity) out of the exponent.
  float maximum = lowest;
#pragma unroll
  for (int q = 0; q < thread_quads; ++q) {
    maximum = fmaxf(maximum, fmaxf(fmaxf(held[q].x, held[q].y), fmaxf(held[q].z, held[q].w)));
  }
  maximum = warp_maximum(maximum);
  float sum = 0.0f;
#pragma unroll
  for (int q = 0; q < thread_quads; ++q) {
    held[q].x = exponential(held[q].x, maximum);
    held[q].y = exponential(held[q].y, maximum);
    held[q].z = exponential(held[q].z, maximum);
    held[q].w = exponential(held[q].w, maximum);
    sum += (held[q].x + held[q].y) + (held[q].z + held[q].w);
  }
  sum = warp_sum(sum);

  // Every warp sends its pair to all blocks of the cluster, one lane a block.
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (lane < cluster_blocks) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(partials))), "r"(lane));
    remote += 8u * (rank * warps + warp);
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(maximum), "f"(sum)
                 : "memory");
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  // From here on a block touches its own shared memory only, so it can leave when it is done.

  float2 partial[lane_partials];
  float row_maximum = lowest;
#pragma unroll
  for (int p = 0; p < lane_partials; ++p) {
    partial[p] = partials[p * 32 + lane];
    row_maximum = fmaxf(row_maximum, partial[p].x);
  }
  row_maximum = warp_maximum(row_maximum);
  float row_sum = 0.0f;
#pragma unroll
  for (int p = 0; p < lane_partials; ++p) {
    row_sum += partial[p].y * exponential(partial[p].x, row_maximum);
  }
  row_sum = warp_sum(row_sum);

  prefetch_ahead(x, warp, lane);
  const float factor = exponential(maximum, row_maximum) / row_sum;
#pragma unroll
  for (int q = 0; q < thread_quads; ++q) {
    to[q * threads] = {held[q].x * factor, held[q].y * factor, held[q].z * factor,
                       held[q].w * factor};
  }
}
