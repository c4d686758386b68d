// C = A·B in FP32 with FP32's accuracy, from three FP16 products on Hopper's asynchronous matrix unit.
//
// A = Ah + Al and B = Bh + Bl, each the FP16 rounding of what is left: C = Al·Bh + Ah·Bl + Ah·Bh keeps 22
// bits of each operand. The matrix unit truncates as it accumulates, so its sums are short: every 256 values
// of k they are added to sums in registers, which round.
//
// 1. split_b: a block splits a row of B, scaled by a power of two of its own.
// 2. split_a: a block splits a row of A. The scales of B's rows are undone here, they belong to columns of A;
//    and the row gets a power of two of its own, which is undone when C is stored.
// 3. multiply_matrices: a cluster of two blocks computes 256 rows x 192 (or 128) columns of C at a time, a
//    block 128 rows of these, a consumer warpgroup 64. Both operands come from shared memory. The two
//    warpgroups promote half a period apart, so that one multiplies while the other adds.
//
// A cluster has a span of 512 columns, cut into 192 + 192 + 128, and two bands of 256 rows: all have the same
// work.
//
// A consumer has 96 sums of the matrix unit and 96 rounded ones, so that little else may be live in its loop:
// the place in the ring and counts. The matrix unit's sums begin with a chunk and end with its promotion.
#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int tile_m = 128;  // of a block
constexpr int tile_k = 32;
constexpr int stages = 5;
constexpr int cluster_blocks = 2;
constexpr int consumers = 2;  // warpgroups
constexpr int wide = 192;     // columns of a tile
constexpr int narrow = 128;
constexpr int span_tiles = 3;  // wide, wide, narrow
constexpr int span = 2 * wide + narrow;
constexpr int band = tile_m * cluster_blocks;
constexpr int bands_at_once = 8;
constexpr int band_rounds = problem::m / (band * bands_at_once);
constexpr int spans = problem::n / span;
constexpr int clusters = bands_at_once * spans;
constexpr int tiles = band_rounds * span_tiles;  // of a cluster

constexpr int k_steps = problem::k / tile_k;
constexpr int chunk_steps = 8;  // that the matrix unit adds up by itself
static_assert(problem::m % (band * bands_at_once) == 0 && problem::n % span == 0 &&
              problem::k % tile_k == 0 && k_steps % chunk_steps == 0);
static_assert(chunk_steps % 2 == 0 && chunk_steps >= 4, "a chunk, or half of one, has two steps or more");
static_assert(clusters == 64, "the plan's grid is 128 blocks");

constexpr int top = 14;  // scaled values lie below 2^15
constexpr int split_threads = 256;
constexpr int split_columns = split_threads * 4;  // that a block handles at once
constexpr int a_parts = problem::k / split_columns;
constexpr int b_parts = problem::n / split_columns;
static_assert(problem::n % split_columns == 0 && problem::k % split_columns == 0);

// Shared memory: rows of 128 bytes, their 16-byte chunks permuted by the copy engine ("swizzle 128B").
// A: a row is 32 high parts, then 32 low parts, of one row of A. B: 64 columns of a row of Bh or Bl.
constexpr int box = 64;
constexpr int box_bytes = tile_k * 128;  // of Bh or Bl: 64 columns, tile_k rows
constexpr int a_bytes = tile_m * 128;
constexpr int factor_bytes = wide / box * box_bytes;  // of Bh or Bl
constexpr int stage_bytes = a_bytes + 2 * factor_bytes;
constexpr int barrier_offset = stages * stage_bytes;
static_assert(tile_k * 2 * 2 == 128 && stage_bytes % 1024 == 0);
static_assert(wide % box == 0 && narrow % box == 0);

/// What the driver encodes: 128 opaque bytes.
struct alignas(64) TensorMap {
  char bytes[128];
};

}  // namespace

namespace ptx {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/// Waits until the launch before this one has ended and its results are visible.
__device__ __forceinline__ void wait_for_previous_launch() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// The next launch may begin, as far as this block is concerned.
__device__ __forceinline__ void let_next_launch_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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

/// Matrix descriptor, 128-byte swizzle, 1024 bytes from 8 rows to the next 8. `low` is its lower word: the
/// address in units of 16 bytes and, from bit 16 on, as `leading_field` has it, the distance from 64 columns
/// to the next 64 (of B; A has no use for it).
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned low) {
  return static_cast<unsigned long long>((1024u >> 4) | (1u << 30)) << 32 | low;
}

__device__ __forceinline__ constexpr unsigned leading_field(unsigned bytes) { return (bytes >> 4) << 16; }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// sum += part, at this place in the program.
__device__ __forceinline__ void add_here(float& sum, float part) {
  asm volatile("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(sum), "f"(part));
}

// clang-format off
#define EIGHT(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define EIGHT_NEW(d, i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3]), \
                        "=f"(d[i + 4]), "=f"(d[i + 5]), "=f"(d[i + 6]), "=f"(d[i + 7])
#define OPERANDS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OPERANDS_96 \
  OPERANDS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
// clang-format on

/// d (64 x 192, FP32) = a (64 x 16) · b (16 x 192); both in shared memory, a with contiguous values of k, b
/// with contiguous columns.
__device__ __forceinline__ void multiply(float (&d)[96], unsigned long long a, unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
      "{" OPERANDS_96 "}, "
      "%96, %97, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT_NEW(d, 0), EIGHT_NEW(d, 8), EIGHT_NEW(d, 16), EIGHT_NEW(d, 24), EIGHT_NEW(d, 32),
        EIGHT_NEW(d, 40), EIGHT_NEW(d, 48), EIGHT_NEW(d, 56), EIGHT_NEW(d, 64), EIGHT_NEW(d, 72),
        EIGHT_NEW(d, 80), EIGHT_NEW(d, 88)
      : "l"(a), "l"(b), "r"(0));
}

/// The same, added to d.
__device__ __forceinline__ void multiply_accumulate(float (&d)[96], unsigned long long a,
                                                    unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
      "{" OPERANDS_96 "}, "
      "%96, %97, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56), EIGHT(d, 64), EIGHT(d, 72), EIGHT(d, 80), EIGHT(d, 88)
      : "l"(a), "l"(b), "r"(1));
}

/// d (64 x 128, FP32) = a (64 x 16) · b (16 x 128).
__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{" OPERANDS_64 "}, "
      "%64, %65, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT_NEW(d, 0), EIGHT_NEW(d, 8), EIGHT_NEW(d, 16), EIGHT_NEW(d, 24), EIGHT_NEW(d, 32),
        EIGHT_NEW(d, 40), EIGHT_NEW(d, 48), EIGHT_NEW(d, 56)
      : "l"(a), "l"(b), "r"(0));
}

/// The same, added to d.
__device__ __forceinline__ void multiply_accumulate(float (&d)[64], unsigned long long a,
                                                    unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{" OPERANDS_64 "}, "
      "%64, %65, p, 1, 1, 0, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56)
      : "l"(a), "l"(b), "r"(1));
}

}  // namespace ptx

namespace {

/// For exponents from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

/// The power of two, as an exponent, that brings values up to `maximum` below 2^(top + 1).
__device__ __forceinline__ int scale_exponent(float maximum) {
  const int exponent = static_cast<int>(__float_as_uint(maximum) >> 23) - 127;
  return maximum == 0.0f ? 126 : min(top - exponent, 126);
}

__device__ __forceinline__ float largest_magnitude(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/// The maximum over the block, for every thread. `partial` (shared) is one value a warp.
__device__ __forceinline__ int block_maximum(int value, int* partial) {
  value = __reduce_max_sync(0xffffffffu, value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  int maximum = partial[0];
#pragma unroll
  for (int warp = 1; warp < split_threads / 32; ++warp) maximum = max(maximum, partial[warp]);
  return maximum;
}

__device__ __forceinline__ unsigned half_pair(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float2 float_pair(unsigned pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

/// Splits four neighbours and stores their high and low parts.
__device__ __forceinline__ void store_split(const float (&v)[4], __half* high, __half* low) {
  unsigned h[2], l[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    h[j] = half_pair(v[j * 2], v[j * 2 + 1]);
    const float2 rounded = float_pair(h[j]);
    l[j] = half_pair(v[j * 2] - rounded.x, v[j * 2 + 1] - rounded.y);
  }
  *reinterpret_cast<uint2*>(high) = make_uint2(h[0], h[1]);
  *reinterpret_cast<uint2*>(low) = make_uint2(l[0], l[1]);
}

/// The exponent of v * 2^-b_exponent; very small if v is 0.
__device__ __forceinline__ int exponent_without(float v, int b_exponent) {
  const unsigned bits = __float_as_uint(v) & 0x7fffffffu;
  return bits == 0 ? -1024 : static_cast<int>(bits >> 23) - 127 - b_exponent;
}

/// v * 2^exponent. Two factors, since one may lie outside FP32's range.
__device__ __forceinline__ float scaled(float v, int exponent) {
  exponent = max(-252, min(252, exponent));
  const int half = exponent >> 1;
  return v * power_of_two(half) * power_of_two(exponent - half);
}

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

  __device__ __forceinline__ int slot_before() const { return (slot == 0 ? stages : slot) - 1; }
};

/// Of a block's tiles in order: two wide ones and a narrow one in a band of rows, then in the next.
struct Tile {
  int row;     // the first of the block
  int column;  // the first of the tile

  __device__ __forceinline__ Tile(int block, int number) {
    const int cluster = block / cluster_blocks, rank = block % cluster_blocks;
    const int round = number / span_tiles, part = number % span_tiles;
    row = (round * bands_at_once + cluster % bands_at_once) * band + rank * tile_m;
    column = cluster / bands_at_once * span + part * wide;
  }
};

__device__ __forceinline__ bool is_wide(int number) { return number % span_tiles < span_tiles - 1; }

__device__ __forceinline__ void produce(const TensorMap& a_map, const TensorMap& b_map, unsigned shared) {
  const unsigned filled = shared + barrier_offset;
  const int rank = static_cast<int>(blockIdx.x) % cluster_blocks;
  RingPosition at;
#pragma unroll 1
  for (int number = 0; number < tiles; ++number) {
    const Tile tile(static_cast<int>(blockIdx.x), number);
    const bool has_all = is_wide(number);
#pragma unroll 1
    for (int step = 0; step < k_steps; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned barrier = filled + at.slot * 8;
      ptx::wait_for(barrier + stages * 8, at.parity ^ 1);  // the first time round, none has been filled
      ptx::expect_bytes(barrier, a_bytes + 2 * box_bytes * ((has_all ? wide : narrow) / box));
      ptx::load_box(a_map, step * (2 * tile_k), tile.row, stage, barrier);
      // The first block loads Bh for both, the second one Bl.
      const int b_row = rank * problem::k + step * tile_k;
      const unsigned target = stage + a_bytes + rank * factor_bytes;
#pragma unroll
      for (int j = 0; j < narrow / box; ++j) {
        ptx::load_box_for_all(b_map, tile.column + j * box, b_row, target + j * box_bytes, barrier,
                              (1 << cluster_blocks) - 1);
      }
      if (has_all) {
#pragma unroll
        for (int j = narrow / box; j < wide / box; ++j) {
          ptx::load_box_for_all(b_map, tile.column + j * box, b_row, target + j * box_bytes, barrier,
                                (1 << cluster_blocks) - 1);
        }
      }
      at.advance();
    }
  }
}

/// Tells the producers of all blocks of the cluster that this warpgroup has read a slot.
__device__ __forceinline__ void release(unsigned emptied, int slot) {
  if (threadIdx.x % 128 < cluster_blocks) ptx::arrive_at(emptied + slot * 8, threadIdx.x % 128);
}

/// The products of a slot, as one commit group: the first of a chunk, or added to `part`. `a` and `b` are
/// lower words of descriptors, of Ah and Bh.
template <bool first, int count>
__device__ __forceinline__ void multiply_step(float (&part)[count], unsigned a, unsigned b) {
  constexpr unsigned a_low = tile_k * 2 >> 4;       // from Ah to Al
  constexpr unsigned b_low = factor_bytes >> 4;     // from Bh to Bl
  constexpr unsigned a_next = 32 >> 4;              // 16 values of k further on
  constexpr unsigned b_next = 16 * 128 >> 4;        // 16 rows further on
  // The small products first: what is truncated is in proportion to the sum so far.
  ptx::wgmma_fence();
  if constexpr (first) {
    ptx::multiply(part, ptx::matrix_descriptor(a + a_low), ptx::matrix_descriptor(b));
  } else {
    ptx::multiply_accumulate(part, ptx::matrix_descriptor(a + a_low), ptx::matrix_descriptor(b));
  }
  ptx::multiply_accumulate(part, ptx::matrix_descriptor(a + a_low + a_next),
                           ptx::matrix_descriptor(b + b_next));
  ptx::multiply_accumulate(part, ptx::matrix_descriptor(a), ptx::matrix_descriptor(b + b_low));
  ptx::multiply_accumulate(part, ptx::matrix_descriptor(a + a_next),
                           ptx::matrix_descriptor(b + b_low + b_next));
  ptx::multiply_accumulate(part, ptx::matrix_descriptor(a), ptx::matrix_descriptor(b));
  ptx::multiply_accumulate(part, ptx::matrix_descriptor(a + a_next), ptx::matrix_descriptor(b + b_next));
  ptx::wgmma_commit();
}

/// A warpgroup's 64 x `columns` of C, in the block's tile with this number.
template <int columns>
__device__ __forceinline__ void compute_tile(float* c, const int* row_exponents, unsigned shared, int group,
                                             int number, RingPosition& at) {
  constexpr int count = columns / 2;
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  // Of slot 0. Bit 24 of an address is the block's rank in its cluster, and would reach the leading field;
  // what lies within a block is below 2^18, and adding to that does not.
  const unsigned place = (shared & 0x3ffffu) >> 4;
  const unsigned a_first = place + group * (64 * 128 >> 4) + ptx::leading_field(16);
  const unsigned b_first = place + (a_bytes >> 4) + ptx::leading_field(box_bytes);

  float sum[count];
#pragma unroll
  for (int i = 0; i < count; ++i) sum[i] = 0.0f;

  // The second warpgroup's first chunk is half as long: the two add at different times.
  int remaining = k_steps;
  int length = group == 0 ? chunk_steps : chunk_steps / 2;
#pragma unroll 1
  do {
    float part[count];  // the matrix unit's, of this chunk alone
    remaining -= length;

    ptx::wait_for(filled + at.slot * 8, at.parity);
    {
      const unsigned offset = at.slot * (stage_bytes >> 4);
      multiply_step<true>(part, a_first + offset, b_first + offset);
    }
    at.advance();
    --length;
#pragma unroll 1
    do {
      ptx::wait_for(filled + at.slot * 8, at.parity);
      const unsigned offset = at.slot * (stage_bytes >> 4);
      multiply_step<false>(part, a_first + offset, b_first + offset);
      ptx::wgmma_wait<1>();  // the step before
      release(emptied, at.slot_before());
      at.advance();
    } while (--length > 0);
    ptx::wgmma_wait<0>();
    release(emptied, at.slot_before());

#pragma unroll
    for (int i = 0; i < count; ++i) ptx::add_here(sum[i], part[i]);
    length = min(chunk_steps, remaining);
  } while (remaining > 0);

  // All of this is found out again, so that nothing of it lives in the loop.
  int thread, block;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  asm volatile("" : "+r"(number));
  const Tile tile(block, number);
  const int lane = thread % 32;
  const int lane_row = tile.row + (thread / 32 - 4) * 16 + lane / 4;  // a warp has 16 rows of the block's

  // Undoes the scaling. Two factors, since their product may lie outside FP32's range.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int exponent;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(exponent) : "l"(row_exponents + lane_row + i * 8) : "memory");
    exponent = -exponent;
    const int half = exponent >> 1;
    const float factor_1 = power_of_two(half), factor_2 = power_of_two(exponent - half);
    float* target = c + static_cast<long long>(lane_row + i * 8) * problem::n + tile.column + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
      const float x = sum[j * 4 + i * 2] * factor_1 * factor_2;
      const float y = sum[j * 4 + i * 2 + 1] * factor_1 * factor_2;
      asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(target + j * 8), "f"(x), "f"(y) : "memory");
    }
  }
}

__device__ __forceinline__ void consume(float* c, const int* row_exponents, unsigned shared) {
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0) - 1;
  RingPosition at;
#pragma unroll 1
  for (int number = 0; number < tiles; ++number) {
    if (is_wide(number)) {
      compute_tile<wide>(c, row_exponents, shared, group, number, at);
    } else {
      compute_tile<narrow>(c, row_exponents, shared, group, number, at);
    }
  }
}

}  // namespace

/// grid: k; block: 256. Row i of B becomes, scaled by the power of two b_exponents[i], a row of Bh and one
/// of Bl in [Bh; Bl] (2k x n).
extern "C" __global__ void __launch_bounds__(split_threads)
    split_b(const float* __restrict__ b, __half* __restrict__ b_split, int* __restrict__ b_exponents) {
  __shared__ int partial[split_threads / 32];
  ptx::let_next_launch_begin();
  const int row = blockIdx.x;
  const float* b_row = b + static_cast<long long>(row) * problem::n + threadIdx.x * 4;

  float4 values[b_parts];
#pragma unroll
  for (int i = 0; i < b_parts; ++i) {
    values[i] = *reinterpret_cast<const float4*>(b_row + i * split_columns);
  }
  float maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < b_parts; ++i) maximum = fmaxf(maximum, largest_magnitude(values[i]));

  // Magnitudes compare like integers.
  const int exponent = scale_exponent(__int_as_float(block_maximum(__float_as_int(maximum), partial)));
  if (threadIdx.x == 0) b_exponents[row] = exponent;

  const float scale = power_of_two(exponent);
  __half* high = b_split + static_cast<long long>(row) * problem::n + threadIdx.x * 4;
  __half* low = high + static_cast<long long>(problem::k) * problem::n;
#pragma unroll
  for (int i = 0; i < b_parts; ++i) {
    const float v[4] = {values[i].x * scale, values[i].y * scale, values[i].z * scale,
                        values[i].w * scale};
    store_split(v, high + i * split_columns, low + i * split_columns);
  }
}

/// grid: m; block: 256. Row i of A, its columns without the scales of B's rows, becomes, scaled by the power
/// of two row_exponents[i], a row of 2k halves: for every 32 values of k their high parts, then their low
/// ones. b_exponents is what the launch before writes.
extern "C" __global__ void __launch_bounds__(split_threads, 5)
    split_a(const float* __restrict__ a, int* b_exponents, __half* a_split, int* row_exponents) {
  __shared__ int partial[split_threads / 32];
  const int row = blockIdx.x;
  const float* a_row = a + static_cast<long long>(row) * problem::k + threadIdx.x * 4;

  float4 values[a_parts];
#pragma unroll
  for (int i = 0; i < a_parts; ++i) {
    values[i] = *reinterpret_cast<const float4*>(a_row + i * split_columns);
  }
  ptx::wait_for_previous_launch();
  ptx::let_next_launch_begin();

  const int* lane_exponents = b_exponents + threadIdx.x * 4;
  int largest = -1024;
#pragma unroll
  for (int i = 0; i < a_parts; ++i) {
    const int4 e = *reinterpret_cast<const int4*>(lane_exponents + i * split_columns);
    largest = max(largest, max(max(exponent_without(values[i].x, e.x), exponent_without(values[i].y, e.y)),
                               max(exponent_without(values[i].z, e.z), exponent_without(values[i].w, e.w))));
  }
  const int exponent = max(-250, min(250, top - block_maximum(largest, partial)));
  if (threadIdx.x == 0) row_exponents[row] = exponent;

  __half* high = a_split + static_cast<long long>(row) * (2 * problem::k) + threadIdx.x / 8 * 64 +
                 threadIdx.x % 8 * 4;
#pragma unroll
  for (int i = 0; i < a_parts; ++i) {
    const int4 e = *reinterpret_cast<const int4*>(lane_exponents + i * split_columns);
    const float v[4] = {scaled(values[i].x, exponent - e.x), scaled(values[i].y, exponent - e.y),
                        scaled(values[i].z, exponent - e.z), scaled(values[i].w, exponent - e.w)};
    store_split(v, high + i * (2 * split_columns), high + i * (2 * split_columns) + tile_k);
  }
}

/// grid: two blocks a cluster; block: 384.
extern "C" __global__ void __launch_bounds__(384, 1)
    multiply_matrices(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                      float* c, int* row_exponents) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      ptx::init_barrier(shared + barrier_offset + i * 8, 1);
      ptx::init_barrier(shared + barrier_offset + (stages + i) * 8, consumers * cluster_blocks);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  ptx::cluster_sync();
  ptx::wait_for_previous_launch();

  // A block's barriers and slots are used by the other one until it is done, too, so both end together.
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) produce(a_map, b_map, shared);
    __syncwarp();
    ptx::cluster_sync();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(c, row_exponents, shared);
    __syncwarp();
    ptx::cluster_sync();
  }
}
