// C = A·B in FP32 with FP32's accuracy, from three FP16 products on Hopper's asynchronous matrix unit.
//
// A = Ah + Al and B = Bh + Bl, each the FP16 rounding of what is left: C = Al·Bh + Ah·Bl + Ah·Bh keeps 22
// bits of each operand. The matrix unit truncates as it accumulates, so its sums are short: every few steps
// they are added to sums in registers, which round.
//
// 1. split_b: a block splits a row of B, scaled by a power of two of its own.
// 2. multiply_matrices: a cluster of two blocks computes 256 x 128 of C, a block 128 x 128, a consumer
//    warpgroup 64 x 128. A arrives in FP32; a warpgroup scales and splits it in registers, on its way to
//    the matrix unit. The scales of B's rows are undone there, too: they belong to columns of A. The scale
//    of A is a guess from the first values of a warp's 16 rows, with a margin of 2^8. If a later value is
//    too large for it, which is rare, the tile is computed again at the end, with the scale that fits.
//
// The order of k within 16 is chosen so that a thread's four values of a row of A are neighbours in memory.
// The order of rows within 8 is such that neither these loads nor the stores of results meet bank conflicts.
#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int tile_m = 128;  // of a block
constexpr int tile_n = 128;
constexpr int tile_k = 32;
constexpr int stages = 6;
constexpr int cluster_blocks = 2;
constexpr int consumers = 2;  // warpgroups
constexpr int group_m = 8;  // pairs of tile rows that run side by side: about square, for reuse in L2

constexpr int k_steps = problem::k / tile_k;
constexpr int chunk_steps = 8;  // that the matrix unit adds up by itself
constexpr int pairs_m = problem::m / (tile_m * cluster_blocks);
constexpr int tiles_n = problem::n / tile_n;
constexpr int tiles = pairs_m * tiles_n;  // of a cluster; the grid leaves each at most 32
constexpr int guess_top = 6;   // values that decide on a scale come to lie below 2^7,
constexpr int exact_top = 14;  // or below 2^15 if they are all there are
static_assert(pairs_m % group_m == 0 && problem::n % tile_n == 0 && problem::k % tile_k == 0 &&
              k_steps % chunk_steps == 0);

constexpr int split_threads = 256;
constexpr int split_columns = split_threads * 4;  // that a block handles at once
static_assert(problem::n % split_columns == 0);

// Shared memory: rows of 128 bytes, their 16-byte chunks permuted by the copy engine ("swizzle 128B").
constexpr int box = 64;                  // halves in such a row
constexpr int box_bytes = tile_k * 128;  // of Bh or Bl: 64 columns, tile_k rows
constexpr int a_bytes = tile_m * 128;    // tile_k floats are a row
constexpr int boxes = tile_n / box;      // of Bh, and as many of Bl
constexpr int factor_bytes = boxes * box_bytes;
constexpr int stage_bytes = a_bytes + 2 * factor_bytes;
constexpr int boxes_a_block = boxes / cluster_blocks;
constexpr int staging_bytes = 16 * 128;  // 16 rows x 32 columns of a warp
constexpr int staging_offset = stages * stage_bytes;
constexpr int scales_offset = staging_offset + consumers * 4 * staging_bytes;
constexpr int again_offset = scales_offset + problem::k * 4;  // a bit for each tile that must be done again
constexpr int barrier_offset = again_offset + 8;
static_assert(tile_k * 4 == 128);

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

__device__ __forceinline__ void store_box(const TensorMap& map, int x, int y, unsigned source) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
      "cp.async.bulk.commit_group;" ::"l"(&map),
      "r"(x), "r"(y), "r"(source)
      : "memory");
}

/// Waits until at most `pending` of this thread's latest stores have yet to read shared memory.
template <int pending>
__device__ __forceinline__ void wait_for_stores_to_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

/// Matrix descriptor, 128-byte swizzle. In bytes: `leading` from 64 columns to the next 64, `stride` from 8
/// rows to the next 8.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned leading,
                                                                unsigned stride) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading >> 4) << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
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

/// d (64 x 128, FP32) = a (64 x 16) · b (16 x 128) + (accumulate ? d : 0); a in registers, b in shared
/// memory with contiguous rows.
__device__ __forceinline__ void multiply_accumulate(float (&d)[64], const unsigned (&a)[4],
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
      "}\n"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48),
        EIGHT(d, 56)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

}  // namespace ptx

namespace {

/// The power of two, as an exponent, that brings values up to `maximum` below 2^(top + 1).
__device__ __forceinline__ int scale_exponent(float maximum, int top) {
  const int exponent = static_cast<int>(__float_as_uint(maximum) >> 23) - 127;
  return maximum == 0.0f ? 126 : min(top - exponent, 126);
}

/// For exponents from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

__device__ __forceinline__ float largest_magnitude(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/// Of magnitudes, which compare like integers.
__device__ __forceinline__ float warp_maximum(float value) {
  return __int_as_float(__reduce_max_sync(0xffffffffu, __float_as_int(value)));
}

/// The maximum over the block, for every thread. `partial` (shared) is one value a warp.
__device__ __forceinline__ float block_maximum(float value, float* partial) {
  value = warp_maximum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float maximum = partial[0];
#pragma unroll
  for (int warp = 1; warp < split_threads / 32; ++warp) maximum = fmaxf(maximum, partial[warp]);
  return maximum;
}

__device__ __forceinline__ unsigned half_pair(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float2 float_pair(unsigned pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

/// Where the matrix unit meets row i of B: a thread's values of A, four neighbours from 4c on, are
/// elements 2c, 2c + 1, 2c + 8 and 2c + 9 of a step of 16.
__device__ __forceinline__ int place_in_k(int i) {
  return (i & ~15) + (i % 16 / 4) * 2 + i % 2 + (i % 4 / 2) * 8;
}

/// Exchanges bits 0 and 2: the row of A, and of C, that has place i among 8.
__device__ __forceinline__ int row_at(int i) { return (i & 2) | (i & 1) << 2 | i >> 2; }

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

struct Tile {
  int pair_m;  // 256 rows
  int tile_n;

  __device__ explicit Tile(int index) {
    const int group = index / (group_m * tiles_n), in_group = index % (group_m * tiles_n);
    pair_m = group * group_m + in_group % group_m;
    tile_n = in_group / group_m;
  }
};

__device__ __forceinline__ void produce(const TensorMap& a_map, const TensorMap& b_map, unsigned shared,
                                        unsigned rank, int first_tile, int tile_step, unsigned chosen,
                                        RingPosition& at) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  for (int index = first_tile, number = 0; index < tiles; index += tile_step, ++number) {
    if ((chosen >> number) % 2 == 0) continue;
    const Tile tile(index);
    const int row = (tile.pair_m * cluster_blocks + static_cast<int>(rank)) * tile_m;
    const int column = tile.tile_n * tile_n + static_cast<int>(rank) * boxes_a_block * box;
    for (int step = 0; step < k_steps; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned barrier = filled + at.slot * 8;
      ptx::wait_for(emptied + at.slot * 8, at.parity ^ 1);  // the first time round, none has been filled
      ptx::expect_bytes(barrier, stage_bytes);
      ptx::load_box(a_map, step * tile_k, row, stage, barrier);
#pragma unroll
      for (int j = 0; j < 2 * boxes_a_block; ++j) {
        const int factor = j / boxes_a_block, part = j % boxes_a_block;  // Bh, then Bl
        ptx::load_box_for_all(b_map, column + part * box, factor * problem::k + step * tile_k,
                              stage + a_bytes + factor * factor_bytes +
                                  (rank * boxes_a_block + part) * box_bytes,
                              barrier, (1 << cluster_blocks) - 1);
      }
      at.advance();
    }
  }
}

/// A warpgroup's 64 x 16 of A, split: what the matrix unit reads while the next step is prepared.
struct SplitA {
  unsigned high[4];
  unsigned low[4];
};

/// Splits four neighbours of one row, and of the row 8 further on.
__device__ __forceinline__ void split_rows(SplitA& split, const float4 (&rows)[2], float4 scales) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float v[4] = {rows[i].x * scales.x, rows[i].y * scales.y, rows[i].z * scales.z,
                        rows[i].w * scales.w};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const unsigned high = half_pair(v[j * 2], v[j * 2 + 1]);
      const float2 rounded = float_pair(high);
      split.high[j * 2 + i] = high;
      split.low[j * 2 + i] = half_pair(v[j * 2] - rounded.x, v[j * 2 + 1] - rounded.y);
    }
  }
}

/// The larger magnitudes of two pairs.
__device__ __forceinline__ unsigned larger_pair(unsigned x, unsigned y) {
  const __half2 pair = __hmax2(__habs2(*reinterpret_cast<const __half2*>(&x)),
                               __habs2(*reinterpret_cast<const __half2*>(&y)));
  return *reinterpret_cast<const unsigned*>(&pair);
}

/// Whether a magnitude of the pair reaches 2^15, or infinity.
__device__ __forceinline__ bool too_large(unsigned pair) {
  return (pair & 0xffff) >= 0x7800 || pair >= 0x78000000;
}

__device__ __forceinline__ float4 operator*(float4 v, float factor) {
  return {v.x * factor, v.y * factor, v.z * factor, v.w * factor};
}

__device__ __forceinline__ float largest_product(const float4& v, const float4& u) {
  return fmaxf(fmaxf(fabsf(v.x * u.x), fabsf(v.y * u.y)), fmaxf(fabsf(v.z * u.z), fabsf(v.w * u.w)));
}

__device__ __forceinline__ float4 load_shared(unsigned address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// Tells the producers of all blocks of the cluster that this warpgroup has read a slot.
__device__ __forceinline__ void release(unsigned emptied, int slot) {
  if (threadIdx.x % 128 < cluster_blocks) ptx::arrive_at(emptied + slot * 8, threadIdx.x % 128);
}

/// Undoes the scaling of a warp's 16 x 128 and stores it, 32 columns at a time. Two factors, since their
/// product may lie outside FP32's range.
__device__ __forceinline__ void store_rows(const TensorMap& c_map, const float (&sum)[64],
                                           unsigned staging, int exponent, int row, int column) {
  const int lane = threadIdx.x % 32;
  const unsigned lane_row = row_at(lane / 4);
  const float factor_1 = power_of_two(exponent / 2);
  const float factor_2 = power_of_two(exponent - exponent / 2);
#pragma unroll
  for (int part = 0; part < tile_n / 32; ++part) {
    if (lane == 0) ptx::wait_for_stores_to_read<0>();
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* d = sum + part * 16 + j * 4;
      const unsigned target = staging + lane_row * 128 + (((j * 2 + lane % 4 / 2) ^ lane_row) * 16) +
                              lane % 2 * 8;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(target + i * 8 * 128),
                     "f"(d[i * 2] * factor_1 * factor_2), "f"(d[i * 2 + 1] * factor_1 * factor_2)
                     : "memory");
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) ptx::store_box(c_map, column + part * 32, row, staging);
  }
}

/// Tells all blocks of the cluster that the tile with this number among theirs must be done again.
__device__ __forceinline__ void demand_again(unsigned again, int number) {
#pragma unroll
  for (unsigned rank = 0; rank < cluster_blocks; ++rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "red.relaxed.cluster.shared::cluster.or.b32 [remote], %2;\n"
        "}\n" ::"r"(again),
        "r"(rank), "r"(1u << number)
        : "memory");
  }
}

/// The largest magnitude in a warp's 16 rows of A, times its column's scale.
__device__ float largest_in_rows(const float* a, int row, const float* scales) {
  float largest = 0.0f;
  for (int k = threadIdx.x % 32; k < problem::k; k += 32) {
    for (int i = 0; i < 16; ++i) {
      largest = fmaxf(largest, fabsf(a[static_cast<long long>(row + i) * problem::k + k] * scales[k]));
    }
  }
  return warp_maximum(largest);
}

/// Computes the tiles whose bits are set in `chosen`; `exact` if their scales must fit all values.
__device__ __forceinline__ void consume(const TensorMap& c_map, const float* a, const float* all_scales,
                                        unsigned shared, unsigned rank, int first_tile, int tile_step,
                                        int b_exponent, unsigned chosen, bool exact, RingPosition& at) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const unsigned staging = shared + staging_offset + (group * 4 + warp) * staging_bytes;
  const int lane_row = row_at(lane / 4);
  const unsigned a_lane = (group * 64 + warp * 16 + lane_row) * 128 + ((lane % 4) ^ lane_row) * 16;
  const unsigned scales_lane = shared + scales_offset + lane % 4 * 16;

  float sum[64], part[64];  // part: of a chunk
  SplitA split[2];          // of the two steps of 16 in a slot

  float a_scale = 1.0f;
  unsigned largest = 0;  // Ah so far

  // A step of 16 of the slot. The chunks of the second half are reached by an exclusive or with 4.
  const auto load_row = [&](unsigned stage, int half, int i) {
    return load_shared(stage + (a_lane ^ (half * 64)) + i * 8 * 128);
  };
  const auto load_scales = [&](int step, int half) {
    return load_shared(scales_lane + (step * tile_k + half * 16) * 4);
  };
  const auto prepare = [&](SplitA& target, unsigned stage, int step, int half) {
    const float4 rows[2] = {load_row(stage, half, 0), load_row(stage, half, 1)};
    split_rows(target, rows, load_scales(step, half) * a_scale);
    largest = larger_pair(largest, larger_pair(larger_pair(target.high[0], target.high[1]),
                                               larger_pair(target.high[2], target.high[3])));
  };
  // The small products first: what is truncated is in proportion to the sum so far.
  const auto multiply = [&](const SplitA& from, unsigned long long high, bool accumulate) {
    ptx::wgmma_fence();
    ptx::multiply_accumulate(part, from.low, high, accumulate);
    ptx::multiply_accumulate(part, from.high, high + (factor_bytes >> 4), true);
    ptx::multiply_accumulate(part, from.high, high, true);
    ptx::wgmma_commit();
  };

  for (int index = first_tile, number = 0; index < tiles; index += tile_step, ++number) {
    if ((chosen >> number) % 2 == 0) continue;
    const Tile tile(index);
    const int row = (tile.pair_m * cluster_blocks + static_cast<int>(rank)) * tile_m + group * 64 + warp * 16;
    ptx::wait_for(filled + at.slot * 8, at.parity);
    int a_exponent;
    if (exact) {
      a_exponent = scale_exponent(largest_in_rows(a, row, all_scales), exact_top);
    } else {
      const unsigned stage = shared + at.slot * stage_bytes;
      const float4 scales = load_scales(0, 0);
      a_exponent = scale_exponent(warp_maximum(fmaxf(largest_product(load_row(stage, 0, 0), scales),
                                                     largest_product(load_row(stage, 0, 1), scales))),
                                  guess_top);
    }
    a_scale = power_of_two(a_exponent);
    largest = 0;
#pragma unroll
    for (int i = 0; i < 64; ++i) sum[i] = 0.0f;
    prepare(split[0], shared + at.slot * stage_bytes, 0, 0);
    for (int chunk = 0; chunk < k_steps; chunk += chunk_steps) {
      for (int i = 0; i < chunk_steps; ++i) {
        const int step = chunk + i;
        const unsigned stage = shared + at.slot * stage_bytes;
        const unsigned long long high = ptx::matrix_descriptor(stage + a_bytes, box_bytes, 1024);
        const int slot = at.slot;
        at.advance();
        multiply(split[0], high, i > 0);
        if (i > 0) {
          ptx::wgmma_wait<1>();  // the step before, which read the other half and the slot before
          release(emptied, (slot == 0 ? stages : slot) - 1);
        }
        prepare(split[1], stage, step, 1);
        multiply(split[1], high + (2048 >> 4), true);
        ptx::wgmma_wait<1>();
        if (step + 1 < k_steps) {
          ptx::wait_for(filled + at.slot * 8, at.parity);
          prepare(split[0], shared + at.slot * stage_bytes, step + 1, 0);
        }
      }
      ptx::wgmma_wait<0>();
      release(emptied, (at.slot == 0 ? stages : at.slot) - 1);
#pragma unroll
      for (int i = 0; i < 64; ++i) sum[i] += part[i];
    }
    if (too_large(largest)) demand_again(shared + again_offset, number);
    store_rows(c_map, sum, staging, -(a_exponent + b_exponent), row, tile.tile_n * tile_n);
  }
  // The stores read shared memory, which must not be given up before.
  if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Writes to shared memory what undoes the scales of B's rows, relative to the smallest one, which it returns
/// as an exponent. `reduced` (shared): a value a warp.
__device__ __forceinline__ int find_scales(const int* b_exponents, float* scales, int* reduced) {
  constexpr int threads = 384, warps = threads / 32;
  int smallest = 126;
  for (int i = threadIdx.x; i < problem::k / 4; i += threads) {
    const int4 e = reinterpret_cast<const int4*>(b_exponents)[i];
    smallest = min(min(smallest, min(e.x, e.y)), min(e.z, e.w));
  }
  smallest = __reduce_min_sync(0xffffffffu, smallest);
  if (threadIdx.x % 32 == 0) reduced[threadIdx.x / 32] = smallest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < warps; ++i) smallest = min(smallest, reduced[i]);
  for (int i = threadIdx.x; i < problem::k; i += threads) {
    scales[i] = power_of_two(max(smallest - b_exponents[i], -126));
  }
  return smallest;
}

}  // namespace

/// grid: k; block: 256. Row i of B becomes, scaled by the power of two b_exponents[i], a row of Bh and one
/// of Bl in [Bh; Bl] (2k x n).
extern "C" __global__ void __launch_bounds__(split_threads)
    split_b(const float* __restrict__ b, __half* __restrict__ b_split, int* __restrict__ b_exponents) {
  __shared__ float partial[split_threads / 32];
  const int row = blockIdx.x;
  constexpr int b_parts = problem::n / split_columns;
  const float* b_row = b + static_cast<long long>(row) * problem::n + threadIdx.x * 4;

  float4 values[b_parts];
#pragma unroll
  for (int i = 0; i < b_parts; ++i) {
    values[i] = *reinterpret_cast<const float4*>(b_row + i * split_columns);
  }
  float maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < b_parts; ++i) maximum = fmaxf(maximum, largest_magnitude(values[i]));

  const int exponent = scale_exponent(block_maximum(maximum, partial), 14);
  if (threadIdx.x == 0) b_exponents[row] = exponent;

  const float scale = power_of_two(exponent);
  __half* high = b_split + static_cast<long long>(place_in_k(row)) * problem::n + threadIdx.x * 4;
  __half* low = high + static_cast<long long>(problem::k) * problem::n;
#pragma unroll
  for (int i = 0; i < b_parts; ++i) {
    const float v[4] = {values[i].x * scale, values[i].y * scale, values[i].z * scale,
                        values[i].w * scale};
    unsigned h[2], l[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      h[j] = half_pair(v[j * 2], v[j * 2 + 1]);
      const float2 rounded = float_pair(h[j]);
      l[j] = half_pair(v[j * 2] - rounded.x, v[j * 2 + 1] - rounded.y);
    }
    *reinterpret_cast<uint2*>(high + i * split_columns) = make_uint2(h[0], h[1]);
    *reinterpret_cast<uint2*>(low + i * split_columns) = make_uint2(l[0], l[1]);
  }
}

/// grid: two blocks a cluster; block: 384.
extern "C" __global__ void __launch_bounds__(384, 1)
    multiply_matrices(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                      const __grid_constant__ TensorMap c_map, const float* __restrict__ a,
                      const int* __restrict__ b_exponents) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  const unsigned rank = ptx::cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      ptx::init_barrier(shared + barrier_offset + i * 8, 1);
      ptx::init_barrier(shared + barrier_offset + (stages + i) * 8, consumers * cluster_blocks);
    }
    asm volatile("st.shared.u32 [%0], 0;" ::"r"(shared + again_offset) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  const int b_exponent =
      find_scales(b_exponents, reinterpret_cast<float*>(shared_memory + scales_offset),
                  reinterpret_cast<int*>(shared_memory + staging_offset));
  __syncthreads();
  ptx::cluster_sync();

  const float* scales = reinterpret_cast<const float*>(shared_memory + scales_offset);
  const volatile unsigned& again = *reinterpret_cast<const volatile unsigned*>(shared_memory + again_offset);
  const int first_tile = blockIdx.x / cluster_blocks, tile_step = gridDim.x / cluster_blocks;
  RingPosition at;
  // The second time round, what must be done again. A block's barriers and slots are used by the other one
  // until it is done, too, so both end together.
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    unsigned chosen = ~0u;
    for (int round = 0; round < 2 && chosen != 0; ++round) {
      if (threadIdx.x == 0) produce(a_map, b_map, shared, rank, first_tile, tile_step, chosen, at);
      __syncwarp();
      ptx::cluster_sync();
      chosen = again;
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    unsigned chosen = ~0u;
    for (int round = 0; round < 2 && chosen != 0; ++round) {
      consume(c_map, a, scales, shared, rank, first_tile, tile_step, b_exponent, chosen, round == 1, at);
      __syncwarp();
      ptx::cluster_sync();
      chosen = again;
    }
  }
}
