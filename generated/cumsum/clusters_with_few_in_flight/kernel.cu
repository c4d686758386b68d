#include "problem.h"

// The kernel for the problem's own sizes, unchanged. In this namespace `problem` is those sizes,
// whatever problem.h says, so that it compiles at every size. The plan launches it only there.
namespace own {

namespace problem {
inline constexpr int rows = 4096;
inline constexpr int length = 32768;
}  // namespace problem

namespace {

constexpr int kCluster = CLUSTER;                       // blocks of a row
constexpr int kWarps = WARPS;                           // warps of a block
constexpr int kVectors = VECTORS;                       // float4 of a thread
constexpr int kWarpElements = kVectors * 128;
constexpr int kBlockElements = kWarps * kWarpElements;
constexpr int kTotals = kCluster * kWarps;              // warp totals of a row
constexpr unsigned kFull = 0xffffffffu;

static_assert(kCluster * kBlockElements == problem::length, "a cluster holds one row");
static_assert(kTotals % 32 == 0, "the same number of totals for each lane");
static_assert(kCluster <= 16, "one lane for each block of the cluster");

__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Past L1, and the first to leave L2: the input is dead once it is read.
__device__ __forceinline__ float4 load_dead(const float* p, unsigned long long policy) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p), "l"(policy));
  return v;
}

// Plain write-back with normal priority: the lines stay in L2 and leave in longer runs.
__device__ __forceinline__ void store_plain(float* p, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}

// s += s of the lane `distance` below, where there is one.
__device__ __forceinline__ void scan_step(float& s, int distance) {
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  .reg .f32 t;\n"
      "  shfl.sync.up.b32 t|p, %0, %1, 0, 0xffffffff;\n"
      "  @p add.f32 %0, %0, t;\n"
      "}\n"
      : "+f"(s)
      : "r"(distance));
}

// CTA scope: only what st.async brought into this block's own shared memory is read afterwards.
__device__ __forceinline__ bool try_wait(unsigned barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace

// The plan asks for dynamic shared memory that is never touched: it only caps the blocks of a
// multiprocessor at BLOCKS.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
cumsum_cluster_narrow(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ alignas(16) float totals[kTotals];
  __shared__ alignas(8) unsigned long long arrived;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  // Clusters are consecutive blocks of a grid of one dimension.
  const int rank = static_cast<int>(blockIdx.x) % kCluster;
  const int row = static_cast<int>(blockIdx.x) / kCluster;

  const unsigned totals_address = static_cast<unsigned>(__cvta_generic_to_shared(totals));
  const unsigned barrier_address = static_cast<unsigned>(__cvta_generic_to_shared(&arrived));

  // The totals of all warps of this block and of the blocks before it will come here. The last
  // warp prepares this while the load queue is busy with the requests of the others.
  if (warp == kWarps - 1) {
    if (lane == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                   :
                   : "r"(barrier_address), "r"(1)
                   : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                   :
                   : "r"(barrier_address), "r"((rank + 1) * kWarps * 4)
                   : "memory");
    }
    __syncwarp();
  }

  // All loads of this thread at once: each request of a warp is 512 contiguous bytes.
  const long long first = static_cast<long long>(row) * problem::length + rank * kBlockElements +
                          warp * kWarpElements + lane * 4;
  const float* source = x + first;
  const unsigned long long dead = evict_first_policy();
  float4 v[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) v[k] = load_dead(source + k * 128, dead);

  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");

  // Prefixes within each vector of four, and the lane's sum.
  float total = 0.0f;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    v[k].y += v[k].x;
    v[k].z += v[k].y;
    v[k].w += v[k].z;
    total += v[k].w;
  }

  // The warp's total, ahead of the scans.
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    total += __shfl_xor_sync(kFull, total, distance);
  }

  // All blocks of the cluster have started and their barriers are initialised.
  __syncwarp();
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");

  // The total goes to this block and to those after it.
  const int slot = rank * kWarps + warp;
  if (lane >= rank && lane < kCluster) {
    unsigned remote_total, remote_barrier;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote_total)
                 : "r"(totals_address + slot * 4), "r"(lane));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote_barrier)
                 : "r"(barrier_address), "r"(lane));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :
                 : "r"(remote_total), "r"(__float_as_uint(total)), "r"(remote_barrier)
                 : "memory");
  }
  __syncwarp();

  // In the shadow of the exchange: the scans over the warp, interleaved and in place.
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) scan_step(v[k].w, distance);
  }
  // w becomes inclusive within the warp's whole part of the row.
  float running = 0.0f;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const float all = __shfl_sync(kFull, v[k].w, 31);
    v[k].w += running;
    running += all;
  }
  // What lies before a vector is w of the lane below; for lane 0, w of lane 31 one vector earlier.
  const int lane_below = (lane + 31) & 31;
  float previous = 0.0f;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const float given = lane == 31 ? previous : v[k].w;
    previous = v[k].w;
    const float before_vector = __shfl_sync(kFull, given, lane_below);
    v[k].x += before_vector;
    v[k].y += before_vector;
    v[k].z += before_vector;
  }

  while (!try_wait(barrier_address, 0)) {
  }
  __syncwarp();

  // Sum of the totals before this warp's own.
  float before = 0.0f;
#pragma unroll
  for (int j = 0; j < kTotals / 32; ++j) {
    const int entry = j * 32 + lane;
    float t = 0.0f;
    if (entry < slot) {
      asm volatile("ld.volatile.shared.f32 %0, [%1];"
                   : "=f"(t)
                   : "r"(totals_address + entry * 4)
                   : "memory");
    }
    before += t;
  }
  __syncwarp();
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    before += __shfl_xor_sync(kFull, before, distance);
  }

  float* target = y + first;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    float4 out;
    out.x = v[k].x + before;
    out.y = v[k].y + before;
    out.z = v[k].z + before;
    out.w = v[k].w + before;
    store_plain(target + k * 128, out);
  }
}

}  // namespace own

// Plain kernels for all other sizes: scalar accesses, 64-bit indices, sums in double.
namespace general {

constexpr long long kRows = ::problem::rows;
constexpr long long kLength = ::problem::length;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kFull = 0xffffffffu;

// Short rows: as many lanes for a row as the next power of two, at most a warp.
constexpr int kLanes = kLength > 16  ? 32
                       : kLength > 8 ? 16
                       : kLength > 4 ? 8
                       : kLength > 2 ? 4
                       : kLength > 1 ? 2
                                     : 1;
constexpr int kGroups = kThreads / kLanes;  // rows of a block at a time

// Long rows: a block goes along its row in tiles.
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;
constexpr int kPadded = kTile + kTile / 32;

__device__ __forceinline__ int padded(int i) { return i + (i >> 5); }

// All conditions around shuffles are uniform over the block; absent lanes add zeros.
extern "C" __global__ void __launch_bounds__(kThreads)
cumsum_any_short(const float* __restrict__ x, float* __restrict__ y) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int group = static_cast<int>(threadIdx.x) / kLanes;
  const long long step = static_cast<long long>(gridDim.x) * kGroups;
  for (long long base = static_cast<long long>(blockIdx.x) * kGroups; base < kRows; base += step) {
    const long long row = base + group;
    const bool present = row < kRows;
    double carry = 0.0;
#pragma unroll 1
    for (long long start = 0; start < kLength; start += kLanes) {
      const long long column = start + lane;
      const bool inside = present && column < kLength;
      double sum = 0.0;
      if (inside) sum = static_cast<double>(x[row * kLength + column]);
      __syncwarp();
#pragma unroll
      for (int distance = 1; distance < kLanes; distance *= 2) {
        const double below = __shfl_up_sync(kFull, sum, distance, kLanes);
        if (lane >= distance) sum += below;
      }
      sum += carry;
      if (inside) y[row * kLength + column] = static_cast<float>(sum);
      __syncwarp();
      carry = __shfl_sync(kFull, sum, kLanes - 1, kLanes);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
cumsum_any_long(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[kPadded];
  __shared__ double warp_totals[kWarps];

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread & 31;
  const int warp = thread >> 5;

  for (long long row = blockIdx.x; row < kRows; row += gridDim.x) {
    const float* source = x + row * kLength;
    float* target = y + row * kLength;
    double carry = 0.0;

    float next[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const long long column = k * kThreads + thread;
      next[k] = 0.0f;
      if (column < kLength) next[k] = source[column];
    }

#pragma unroll 1
    for (long long start = 0; start < kLength; start += kTile) {
      // These are the slots that this thread itself read last.
#pragma unroll
      for (int k = 0; k < kItems; ++k) tile[padded(k * kThreads + thread)] = next[k];
      // The next tile is on its way while this one is summed.
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const long long column = start + kTile + k * kThreads + thread;
        next[k] = 0.0f;
        if (column < kLength) next[k] = source[column];
      }
      __syncthreads();

      // From here each thread has kItems neighbours.
      float v[kItems];
      double sum = 0.0;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        v[j] = tile[padded(thread * kItems + j)];
        sum += static_cast<double>(v[j]);
      }
      double inclusive = sum;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const double below = __shfl_up_sync(kFull, inclusive, distance);
        if (lane >= distance) inclusive += below;
      }
      double running = __shfl_up_sync(kFull, inclusive, 1);
      if (lane == 0) running = 0.0;
      if (lane == 31) warp_totals[warp] = inclusive;
      __syncthreads();

      double warps_before = 0.0;
      double all = 0.0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const double t = warp_totals[w];
        if (w < warp) warps_before += t;
        all += t;
      }
      running += carry + warps_before;
      carry += all;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        running += static_cast<double>(v[j]);
        tile[padded(thread * kItems + j)] = static_cast<float>(running);
      }
      __syncthreads();

#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const long long column = start + k * kThreads + thread;
        if (column < kLength) target[column] = tile[padded(k * kThreads + thread)];
      }
    }
  }
}

}  // namespace general
