// Softmax over rows of 65536 floats. A cluster of blocks takes a row and reads it twice: once for
// the maximum and the sum (kept in L2), once more out of L2 for the results.

#include "problem.h"

namespace {

constexpr int cluster_blocks = CLUSTER;
constexpr int threads = THREADS;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::columns / 4;
constexpr int block_quads = row_quads / cluster_blocks;
constexpr int thread_quads = block_quads / threads;
constexpr int batch = BATCH;
constexpr int all_warps = cluster_blocks * warps;
constexpr int lane_partials = all_warps / 32;
static_assert(cluster_blocks * threads * thread_quads * 4 == problem::columns, "even slices");
static_assert(thread_quads % batch == 0, "whole batches");
static_assert(all_warps % 32 == 0 && cluster_blocks <= 32, "whole partials a lane");

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

__device__ __forceinline__ float largest(const float4& quad) {
  return fmaxf(fmaxf(quad.x, quad.y), fmaxf(quad.z, quad.w));
}

/// Volatile, so that the second pass is not replaced by values kept from the first one.
__device__ __forceinline__ float4 load(const float4* global, unsigned long long policy) {
  float4 quad;
  asm volatile(
      "ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
      : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w)
      : "l"(global), "l"(policy)
      : "memory");
  return quad;
}

__device__ __forceinline__ void store(float4* global, const float4& quad,
                                      unsigned long long policy) {
#if STORE_HINT
  asm volatile("st.global.L1::no_allocate.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(
                   global),
               "f"(quad.x), "f"(quad.y), "f"(quad.z), "f"(quad.w), "l"(policy)
               : "memory");
#else
  __stcs(global, quad);
#endif
}

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// A maximum and the sum of e^(x - maximum) over some elements.
struct Partial {
  float maximum;
  float sum;
};

/// Merges what the 32 lanes hold; every one of them gets the result.
__device__ __forceinline__ Partial merge_warp(Partial own) {
  float maximum = own.maximum;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, distance));
  }
  float sum = own.sum * exponential(own.maximum, maximum);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  return {maximum, sum};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 2048 / threads)
    softmax(const float* x, float* y) {
  __shared__ __align__(16) float2 partials[all_warps];

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

  unsigned long long keep;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));

  // The start keeps -infinity - (-infinity) out of the exponent.
  float thread_maximum = lowest;
  float thread_sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < thread_quads; first += batch) {
    float4 quads[batch];
#pragma unroll
    for (int q = 0; q < batch; ++q) quads[q] = load(from + (first + q) * threads, keep);
    float maximum = thread_maximum;
#pragma unroll
    for (int q = 0; q < batch; ++q) maximum = fmaxf(maximum, largest(quads[q]));
    float sum = thread_sum * exponential(thread_maximum, maximum);
#pragma unroll
    for (int q = 0; q < batch; ++q) {
      sum += (exponential(quads[q].x, maximum) + exponential(quads[q].y, maximum)) +
             (exponential(quads[q].z, maximum) + exponential(quads[q].w, maximum));
    }
    thread_maximum = maximum;
    thread_sum = sum;
  }

  // Every warp sends its partial to all blocks of the cluster, one lane a block.
  const Partial of_warp = merge_warp({thread_maximum, thread_sum});
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (lane < cluster_blocks) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(shared_address(partials)), "r"(lane));
    remote += 8u * (rank * warps + warp);
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(of_warp.maximum),
                 "f"(of_warp.sum)
                 : "memory");
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  // From here on a block touches its own shared memory only, so it can leave when it is done.

  unsigned long long drop;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(drop));

  // The first batch is requested before the partials are merged.
  float4 quads[batch];
#pragma unroll
  for (int q = 0; q < batch; ++q) quads[q] = load(from + q * threads, drop);

  float maximum = lowest;
#pragma unroll
  for (int p = 0; p < lane_partials; ++p) maximum = fmaxf(maximum, partials[p * 32 + lane].x);
  float sum = 0.0f;
#pragma unroll
  for (int p = 0; p < lane_partials; ++p) {
    const float2 partial = partials[p * 32 + lane];
    sum += partial.y * exponential(partial.x, maximum);
  }
  const Partial of_row = merge_warp({maximum, sum});
  const float inverse = 1.0f / of_row.sum;

#pragma unroll 1
  for (int first = 0;;) {
#pragma unroll
    for (int q = 0; q < batch; ++q) {
      float4 quad;
      quad.x = exponential(quads[q].x, of_row.maximum) * inverse;
      quad.y = exponential(quads[q].y, of_row.maximum) * inverse;
      quad.z = exponential(quads[q].z, of_row.maximum) * inverse;
      quad.w = exponential(quads[q].w, of_row.maximum) * inverse;
      store(to + (first + q) * threads, quad, drop);
    }
    first += batch;
    if (first >= thread_quads) break;
#pragma unroll
    for (int q = 0; q < batch; ++q) quads[q] = load(from + (first + q) * threads, drop);
  }
}
