// C = A·B in BF16 with FP32 accumulation on Hopper's asynchronous matrix unit.
//
// A cluster of two blocks computes 256 x 1024 of C, in parts of 384, 384 and 256 columns. A block has 128 of
// the rows; each of its two consumer warpgroups has half of a part's columns, so that up to 192 registers of
// a thread are sums. One thread of a third warpgroup keeps a ring of k-steps filled by bulk tensor copies:
// each block fetches its own rows of A, and half of the columns of B for both blocks.
//
// All parts need the same rows of A, so the consumers need not be in the same part: the second one's tiles
// begin and end `stagger` steps after the first one's. While one of them stores its results, by way of small
// buffers and bulk tensor stores, the other one has the matrix unit for itself.
//
// Steps in the ring:    F G F G F G F    F: the first `stagger` steps of k, G: the others
// first consumer:       0 0 1 1 2 2 -    (its part)
// second consumer:      - 0 0 1 1 2 2
// Every second G goes backwards: it begins with what the part before left in L2.
#include <cuda_bf16.h>

#include "problem.h"

namespace {

constexpr int cluster_blocks = 2;
constexpr int consumers = 2;  // warpgroups of a block
constexpr int block_rows = 128;
constexpr int cluster_rows = block_rows * cluster_blocks;
constexpr int wide = 192;    // columns of a consumer in a part
constexpr int narrow = 128;  // and in the last one
constexpr int parts = 3;
constexpr int tile_k = 32;
constexpr int stages = 6;
constexpr int stagger = STAGGER;  // steps
constexpr int cluster_columns = ((parts - 1) * wide + narrow) * consumers;

constexpr int k_steps = problem::k / tile_k;
constexpr int clusters_m = problem::m / cluster_rows;
static_assert(problem::m % cluster_rows == 0 && problem::n % cluster_columns == 0 && problem::k % tile_k == 0);
static_assert(stagger > 0 && stagger < k_steps);

// Shared memory: rows of 64 bytes for A and of 128 bytes for B, their 16-byte chunks permuted by the copy
// engine ("swizzle 64B" and "128B").
constexpr int a_row_bytes = tile_k * 2;
constexpr int a_bytes = block_rows * a_row_bytes;
constexpr int box = 64;                          // columns of B in a row
constexpr int box_bytes = tile_k * 128;          // of B: 64 columns, tile_k rows
constexpr int b_bytes = wide / box * box_bytes;  // of a consumer
constexpr int stage_bytes = a_bytes + consumers * b_bytes;
constexpr int staging_bytes = 16 * 128;  // 16 rows x 64 columns of a warp
constexpr int staging_buffers = 2;       // of a warp
constexpr int staging_offset = stages * stage_bytes;
constexpr int barrier_offset = staging_offset + consumers * 4 * staging_buffers * staging_bytes;
static_assert(barrier_offset + 2 * stages * 8 <= 229472);
static_assert(stage_bytes % 1024 == 0 && a_bytes % 1024 == 0 && b_bytes % 1024 == 0);

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

/// Arrives on a barrier of this block.
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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

/// Starts a copy from shared memory, as a group of its own.
__device__ __forceinline__ void store_box(const TensorMap& map, int x, int y, unsigned source) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
      "cp.async.bulk.commit_group;" ::"l"(&map),
      "r"(x), "r"(y), "r"(source)
      : "memory");
}

/// Until all but the last `pending` stores of this thread have read their source.
template <int pending>
__device__ __forceinline__ void wait_for_sources() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

/// What this thread wrote into shared memory becomes visible to the copy engine.
__device__ __forceinline__ void fence_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void store_matrices(unsigned target, unsigned r0, unsigned r1, unsigned r2,
                                               unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

/// Matrix descriptor. In bytes, for contiguous columns: `leading` from 64 columns to the next 64, `stride`
/// from 8 rows to the next 8; for contiguous rows, `stride` alone counts. `swizzle`: 1 for 128 bytes, 2 for
/// 64.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned leading,
                                                                unsigned stride,
                                                                unsigned long long swizzle) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading >> 4) << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
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

/// d (64 x 192, FP32) = a (64 x 16) · b (16 x 192) + (accumulate ? d : 0); rows of a and rows of b are
/// contiguous in shared memory.
__device__ __forceinline__ void multiply_accumulate(float (&d)[96], unsigned long long a,
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
      "%96, %97, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56), EIGHT(d, 64), EIGHT(d, 72), EIGHT(d, 80), EIGHT(d, 88)
      : "l"(a), "l"(b), "r"(accumulate));
}

/// d (64 x 128, FP32) = a (64 x 16) · b (16 x 128) + (accumulate ? d : 0); rows of a and rows of b are
/// contiguous in shared memory.
__device__ __forceinline__ void multiply_accumulate(float (&d)[64], unsigned long long a,
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56)
      : "l"(a), "l"(b), "r"(accumulate));
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

/// A consumer's columns in a part.
__device__ __forceinline__ int columns_of(int part) { return part < parts - 1 ? wide : narrow; }

/// Where they begin, from the cluster's first column.
__device__ __forceinline__ int column_of(int part, int consumer) {
  return part * consumers * wide + consumer * columns_of(part);
}

__device__ __forceinline__ unsigned bf16_pair(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ void produce(const TensorMap& a_map, const TensorMap& b_map, unsigned shared,
                                        int rank, int row, int cluster_column) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  constexpr unsigned short everyone = (1 << cluster_blocks) - 1;
  RingPosition at;
#pragma unroll 1
  for (int phase = 0; phase <= 2 * parts; ++phase) {
    // The consumers' parts; `parts` or -1 where one has none.
    const int first = phase / 2, second = (phase + 1) / 2 - 1;
    const int first_boxes = first < parts ? columns_of(first) / box : 0;
    const int second_boxes = second >= 0 ? columns_of(second) / box : 0;
    const int first_column = cluster_column + column_of(first, 0);
    const int second_column = cluster_column + column_of(second, 1);
    const bool lag = phase % 2 == 0;
    const bool backwards = !lag && first % 2 == 1;
    const int steps = lag ? stagger : k_steps - stagger;
    const int advance_k = backwards ? -tile_k : tile_k;
    int k = (lag ? 0 : backwards ? k_steps - 1 : stagger) * tile_k;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned barrier = filled + at.slot * 8;
      ptx::wait_for(emptied + at.slot * 8, at.parity ^ 1);  // the first time round, none has been filled
      if (phase == 2 * parts) {
        // The first consumers of both blocks are done and will not release this slot.
        ptx::arrive(emptied + at.slot * 8);
        ptx::arrive(emptied + at.slot * 8);
      }
      ptx::expect_bytes(barrier, a_bytes + (first_boxes + second_boxes) * box_bytes);
      ptx::load_box(a_map, k, row, stage, barrier);
      // Of six boxes, each block fetches every second one for both.
#pragma unroll 1
      for (int i = rank; i < first_boxes; i += cluster_blocks) {
        ptx::load_box_for_all(b_map, first_column + i * box, k, stage + a_bytes + i * box_bytes, barrier,
                              everyone);
      }
#pragma unroll 1
      for (int i = 1 - rank; i < second_boxes; i += cluster_blocks) {
        ptx::load_box_for_all(b_map, second_column + i * box, k, stage + a_bytes + b_bytes + i * box_bytes,
                              barrier, everyone);
      }
      k += advance_k;
      at.advance();
    }
  }
}

/// Tells the producers of both blocks that this warpgroup has read a slot.
__device__ __forceinline__ void release(unsigned emptied, int slot) {
  if (threadIdx.x % 128 < cluster_blocks) ptx::arrive_at(emptied + slot * 8, threadIdx.x % 128);
}

/// A warp's 16 rows, 64 columns at a time, by way of its two buffers in turn, the first one being `buffer`.
template <int columns>
__device__ __forceinline__ void store_rows(const TensorMap& c_map, const float (&sum)[columns / 2],
                                           unsigned staging, int buffer, int row, int column) {
  const int lane = threadIdx.x % 32;
  // Lanes 0 to 15 address rows of the first 8 columns of 16, lanes 16 to 31 those of the last 8.
  const unsigned lane_row = (lane % 16) * 128, lane_chunk = lane / 16;
#pragma unroll
  for (int part = 0; part < columns / box; ++part) {
    const unsigned target = staging + (buffer + part) % staging_buffers * staging_bytes;
    if (lane == 0) ptx::wait_for_sources<staging_buffers - 1>();
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* d = sum + part * 32 + j * 8;
      ptx::store_matrices(target + lane_row + (((j * 2 + lane_chunk) ^ (lane % 8)) * 16),
                          bf16_pair(d[0], d[1]), bf16_pair(d[2], d[3]), bf16_pair(d[4], d[5]),
                          bf16_pair(d[6], d[7]));
    }
    ptx::fence_for_copies();
    __syncwarp();
    if (lane == 0) ptx::store_box(c_map, column + part * box, row, target);
  }
  __syncwarp();
}

/// A consumer's 128 rows of a part. `row`, `column`: where this warp's results begin.
template <int columns>
__device__ __forceinline__ void consume_part(const TensorMap& c_map, unsigned shared, unsigned staging,
                                             int row, int column, RingPosition& at) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  const int group = threadIdx.x / 128 - 1;
  float sum[2][columns / 2];  // the first 64 rows and the last
  int previous = 0;
  for (int step = 0; step < k_steps; ++step) {
    const unsigned stage = shared + at.slot * stage_bytes;
    const unsigned long long a = ptx::matrix_descriptor(stage, 16, 8 * a_row_bytes, 2);
    const unsigned long long b =
        ptx::matrix_descriptor(stage + a_bytes + group * b_bytes, box_bytes, 1024, 1);
    ptx::wait_for(filled + at.slot * 8, at.parity);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < tile_k / 16; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::multiply_accumulate(sum[half], a + ((half * 64 * a_row_bytes + i * 32) >> 4),
                                 b + i * (2048 >> 4), step > 0 || i > 0);
      }
    }
    ptx::wgmma_commit();
    if (step > 0) {
      ptx::wgmma_wait<1>();
      release(emptied, previous);
    }
    previous = at.slot;
    at.advance();
  }
  ptx::wgmma_wait<0>();
  release(emptied, previous);
  // An even number of boxes in all: the next part begins with the first buffer again.
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    store_rows<columns>(c_map, sum[half], staging, half * (columns / box), row + half * 64, column);
  }
}

__device__ __forceinline__ void consume(const TensorMap& c_map, unsigned shared, int row, int column) {
  const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4;
  const unsigned staging = shared + staging_offset + (group * 4 + warp) * staging_buffers * staging_bytes;
  RingPosition at;
  if (group == 1) {
    // The first steps are the other consumer's alone.
    const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
#pragma unroll 1
    for (int step = 0; step < stagger; ++step) {
      ptx::wait_for(filled + at.slot * 8, at.parity);
      release(emptied, at.slot);
      at.advance();
    }
    __syncwarp();
  }
  row += warp * 16;
#pragma unroll 1
  for (int part = 0; part < parts - 1; ++part) {
    consume_part<wide>(c_map, shared, staging, row, column + column_of(part, group), at);
  }
  consume_part<narrow>(c_map, shared, staging, row, column + column_of(parts - 1, group), at);
  if (threadIdx.x % 32 == 0) ptx::wait_for_sources<0>();
}

}  // namespace

/// grid: two blocks a cluster, a cluster for 256 x 1024; block: 384.
extern "C" __global__ void __launch_bounds__(384, 1)
    multiply_matrices(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                      const __grid_constant__ TensorMap c_map) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  const int rank = static_cast<int>(ptx::cluster_rank());
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
  __syncwarp();
  ptx::cluster_sync();

  const int cluster = blockIdx.x / cluster_blocks;
  const int row = cluster % clusters_m * cluster_rows + rank * block_rows;
  const int column = cluster / clusters_m * cluster_columns;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) produce(a_map, b_map, shared, rank, row, column);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(c_map, shared, row, column);
  }
  // A block's barriers and slots are used by the other one until it is done, too.
  __syncwarp();
  ptx::cluster_sync();
}
