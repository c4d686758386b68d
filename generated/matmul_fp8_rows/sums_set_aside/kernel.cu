// C = (A·B^T) scaled by row and by column, FP8 (e4m3) in, BF16 out, on Hopper's asynchronous matrix unit.
//
// A cluster of two blocks computes 256 x 256 of C at a time, a block 128 x 256, each of its two consumer
// warpgroups 64 x 256. One thread of a third warpgroup keeps a ring of k-steps filled by bulk tensor copies:
// each block fetches its own rows of A, and half of the rows of B for both blocks. 64 clusters compute four
// such tiles each, one in every quarter of C. Every second tile goes through k backwards.
//
// The matrix unit adds FP8 products with few bits, so a warpgroup puts its sums aside after every 512 values
// of k, as scaled FP16 pairs, and starts again from zero; the two warpgroups do so at different steps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int tile_m = 128;  // of a block
constexpr int tile_n = 256;  // of a block and of a cluster
constexpr int tile_k = 128;
constexpr int stages = 4;
constexpr int cluster_blocks = 2;
constexpr int consumers = 2;  // warpgroups
constexpr int tiles = 4;      // of a cluster
constexpr int keep_steps = 4;  // k-steps that the matrix unit adds up

constexpr int k_steps = problem::k / tile_k;
constexpr int quarter_rows = problem::m / (tile_m * cluster_blocks) / 2;  // in tiles of a cluster
constexpr int quarter_columns = problem::n / tile_n / 2;
static_assert(quarter_rows * 2 * tile_m * cluster_blocks == problem::m);
static_assert(quarter_columns * 2 * tile_n == problem::n);
static_assert(problem::k % (tile_k * keep_steps) == 0);
static_assert(quarter_rows * quarter_columns == 64);  // the plan's clusters

// Shared memory. Rows of 128 bytes everywhere, their 16-byte chunks permuted by "swizzle 128B".
constexpr int row_bytes = tile_k;
constexpr int a_bytes = tile_m * row_bytes;
constexpr int b_rows = tile_n / cluster_blocks;  // that a block fetches
constexpr int b_bytes = tile_n * row_bytes;
constexpr int stage_bytes = a_bytes + b_bytes;
constexpr int staging_bytes = 16 * 128;  // 16 rows x 64 columns of a warp
constexpr int staging_offset = stages * stage_bytes;
constexpr int scales_offset = staging_offset + consumers * 4 * 2 * staging_bytes;
constexpr int barrier_offset = scales_offset + 2 * tile_n * 4;
static_assert(barrier_offset + stages * 16 == 231488);  // the plan's dynamic shared memory

// What is put aside is scaled so that the largest possible sum (4096 * 448 * 448) is finite in FP16.
constexpr float keep_scale = 1.0f / 16384.0f;
constexpr float keep_unscale = 16384.0f;

/// What the driver encodes: 128 opaque bytes.
struct alignas(64) TensorMap {
  char bytes[128];
};

}  // namespace

namespace ptx {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives on the barrier at the same place in block `rank` of the cluster.
__device__ __forceinline__ void arrive_at(unsigned barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void load_box(const TensorMap& map, int x, int y, unsigned target,
                                         unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(target),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/// To the same place in all blocks of the mask; each one's own barrier counts the bytes.
__device__ __forceinline__ void load_box_for_all(const TensorMap& map, int x, int y, unsigned target,
                                                 unsigned barrier, unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
      : "memory");
}

/// Stores a box and closes the group that it alone makes up.
__device__ __forceinline__ void store_box(const TensorMap& map, int x, int y, unsigned source) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(x), "r"(y), "r"(source)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Until all but the last `pending` stores of this thread have read their shared memory.
template <int pending>
__device__ __forceinline__ void wait_for_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

__device__ __forceinline__ void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ float2 load_shared_pair(unsigned address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
  return v;
}

__device__ __forceinline__ void store_shared(unsigned address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

__device__ __forceinline__ void store_matrices(unsigned target, unsigned r0, unsigned r1, unsigned r2,
                                               unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

/// Matrix descriptor for rows of 128 contiguous bytes, swizzled by 128 bytes, 8 of them every 1024 bytes.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | 1ull << 16 |
         static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// clang-format off
#define EIGHT(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
// clang-format on

/// d (64 x 256, FP32) = a (64 x 32) · b (256 x 32) transposed + (accumulate ? d : 0); e4m3, k contiguous.
__device__ __forceinline__ void multiply_accumulate(float (&d)[128], unsigned long long a,
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56), EIGHT(d, 64), EIGHT(d, 72), EIGHT(d, 80), EIGHT(d, 88), EIGHT(d, 96), EIGHT(d, 104),
        EIGHT(d, 112), EIGHT(d, 120)
      : "l"(a), "l"(b), "r"(accumulate));
}

/// Nothing that reads these may move before this point.
__device__ __forceinline__ void hold(float (&d)[128]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

}  // namespace ptx

namespace {

/// A place in the ring and the parity of its barriers' current phase.
struct RingPosition {
  int slot = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == stages) {
      slot = 0;
      parity ^= 1;
    }
  }
};

/// Quarters in the order upper left, lower left, lower right, upper right.
__device__ __forceinline__ int row_of(int cluster, int tile) {
  return (((tile + 1) / 2 % 2) * quarter_rows + cluster % quarter_rows) * (tile_m * cluster_blocks);
}

__device__ __forceinline__ int column_of(int cluster, int right) {
  return (right * quarter_columns + cluster / quarter_rows) * tile_n;
}

/// Where in k a step of a tile lies.
__device__ __forceinline__ int place_of_step(int step, int tile) {
  return tile % 2 == 0 ? step : k_steps - 1 - step;
}

__device__ __forceinline__ unsigned bf16_pair(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ void produce(const TensorMap& a_map, const TensorMap& b_map, unsigned shared,
                                        int rank, int cluster) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  RingPosition at;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const int row = row_of(cluster, tile) + rank * tile_m;
    const int column = column_of(cluster, tile / 2) + rank * b_rows;
#pragma unroll 1
    for (int step = 0; step < k_steps; ++step) {
      const int k = place_of_step(step, tile) * tile_k;
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned barrier = filled + at.slot * 8;
      ptx::wait_for(emptied + at.slot * 8, at.parity ^ 1);  // the first time round, none has been filled
      ptx::expect_bytes(barrier, stage_bytes);
      ptx::load_box_for_all(b_map, k, column, stage + a_bytes + rank * b_rows * row_bytes, barrier,
                            (1 << cluster_blocks) - 1);
      ptx::load_box(a_map, k, row, stage, barrier);
      at.advance();
    }
  }
}

/// Tells the producers of both blocks that this warpgroup has read a slot.
__device__ __forceinline__ void release(unsigned emptied, int slot) {
  if (threadIdx.x % 128 < cluster_blocks) ptx::arrive_at(emptied + slot * 8, threadIdx.x % 128);
}

/// Scales a warp's 16 rows and stores them, 64 columns at a time, by two buffers in turn.
__device__ __forceinline__ void store_rows(const TensorMap& c_map, const float (&sum)[128],
                                           const __half2 (&kept)[64], float upper_scale, float lower_scale,
                                           unsigned scales, unsigned staging, int x, int y) {
  const int lane = threadIdx.x % 32;
  // Lanes 0 to 15 address rows of the first 8 columns of 16, lanes 16 to 31 those of the last 8.
  const unsigned lane_row = (lane % 16) * 128, lane_chunk = lane / 16;
  const unsigned lane_scales = scales + lane % 4 * 8;
#pragma unroll
  for (int part = 0; part < tile_n / 64; ++part) {
    const unsigned buffer = staging + part % 2 * staging_bytes;
    if (lane == 0) ptx::wait_for_reads<1>();
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      unsigned packed[4];
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int first = part * 32 + j * 8 + side * 4;
        const float2 scale = ptx::load_shared_pair(lane_scales + (part * 64 + j * 16 + side * 8) * 4);
        const float2 upper = __half22float2(kept[first / 2]);
        const float2 lower = __half22float2(kept[first / 2 + 1]);
        packed[side * 2] = bf16_pair(fmaf(upper.x, keep_unscale, sum[first]) * (upper_scale * scale.x),
                                     fmaf(upper.y, keep_unscale, sum[first + 1]) * (upper_scale * scale.y));
        packed[side * 2 + 1] =
            bf16_pair(fmaf(lower.x, keep_unscale, sum[first + 2]) * (lower_scale * scale.x),
                      fmaf(lower.y, keep_unscale, sum[first + 3]) * (lower_scale * scale.y));
      }
      ptx::store_matrices(buffer + lane_row + (((j * 2 + lane_chunk) ^ (lane % 8)) * 16), packed[0],
                          packed[1], packed[2], packed[3]);
    }
    ptx::fence_async_shared();
    __syncwarp();
    if (lane == 0) ptx::store_box(c_map, x + part * 64, y, buffer);
  }
}

/// A warpgroup's 64 rows of a tile. `x`, `y`: where this warp's 16 rows begin in C.
__device__ __forceinline__ void consume_tile(const TensorMap& c_map, const float* __restrict__ a_scale,
                                             unsigned shared, unsigned scales, unsigned staging, int group,
                                             int x, int y, RingPosition& at) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  const int lane = threadIdx.x % 32;
  const float upper_scale = __ldg(a_scale + y + lane / 4);
  const float lower_scale = __ldg(a_scale + y + lane / 4 + 8);
  float sum[128];
  __half2 kept[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) kept[i] = __floats2half2_rn(0.0f, 0.0f);

  int step = 0;
  int end = group == 0 ? keep_steps : keep_steps / 2;
#pragma unroll 1
  while (true) {
    const int begin = step;
    int previous = 0;
#pragma unroll 1
    for (; step < end; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned long long a = ptx::matrix_descriptor(stage + group * 64 * row_bytes);
      const unsigned long long b = ptx::matrix_descriptor(stage + a_bytes);
      ptx::wait_for(filled + at.slot * 8, at.parity);
      ptx::wgmma_fence();
#pragma unroll
      for (int i = 0; i < tile_k / 32; ++i) {
        ptx::multiply_accumulate(sum, a + i * (32 >> 4), b + i * (32 >> 4), step > begin || i > 0);
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();
      if (step > begin) release(emptied, previous);
      previous = at.slot;
      at.advance();
    }
    ptx::wgmma_wait<0>();
    release(emptied, previous);
    ptx::hold(sum);
    if (end == k_steps) break;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      kept[i] = __hadd2(kept[i], __floats2half2_rn(sum[2 * i] * keep_scale, sum[2 * i + 1] * keep_scale));
    }
    end = min(end + keep_steps, k_steps);
  }
  store_rows(c_map, sum, kept, upper_scale, lower_scale, scales, staging, x, y);
}

__device__ __forceinline__ void consume(const TensorMap& c_map, const float* __restrict__ a_scale,
                                        unsigned shared, int rank, int cluster) {
  // The same in all lanes, and known to be.
  const int warps = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int group = warps / 4 - 1, warp = warps % 4;
  const unsigned staging = shared + staging_offset + (group * 4 + warp) * 2 * staging_bytes;
  RingPosition at;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const int y = row_of(cluster, tile) + rank * tile_m + group * 64 + warp * 16;
    const int x = column_of(cluster, tile / 2);
    consume_tile(c_map, a_scale, shared, shared + scales_offset + tile / 2 * tile_n * 4, staging, group, x, y,
                 at);
  }
  if (threadIdx.x % 32 == 0) ptx::wait_for_reads<0>();
}

}  // namespace

/// grid: two blocks a cluster, 64 clusters; block: 384.
extern "C" __global__ void __launch_bounds__(384, 1)
    multiply_matrices(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                      const __grid_constant__ TensorMap c_map, const float* __restrict__ a_scale,
                      const float* __restrict__ b_scale) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  const int rank = static_cast<int>(ptx::cluster_rank());
  const int cluster = blockIdx.x / cluster_blocks;
  if (threadIdx.x == 0) {
    ptx::prefetch_map(a_map);
    ptx::prefetch_map(b_map);
    ptx::prefetch_map(c_map);
    for (int i = 0; i < stages; ++i) {
      ptx::init_barrier(shared + barrier_offset + i * 8, 1);
      ptx::init_barrier(shared + barrier_offset + (stages + i) * 8, consumers * cluster_blocks);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // The scales of the columns of all four tiles, which are those of two.
  for (int i = threadIdx.x; i < 2 * tile_n; i += 384) {
    ptx::store_shared(shared + scales_offset + i * 4,
                      __ldg(b_scale + column_of(cluster, i / tile_n) + i % tile_n));
  }
  __syncwarp();
  ptx::cluster_sync();

  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) produce(a_map, b_map, shared, rank, cluster);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(c_map, a_scale, shared, rank, cluster);
  }
  // A block's barriers and slots are used by the other one until it is done, too.
  __syncwarp();
  ptx::cluster_sync();
}
