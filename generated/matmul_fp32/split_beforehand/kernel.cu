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

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
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

/// Matrix descriptor, 128-byte swizzle. In bytes: `leading` from 64 columns to the next 64 (of B; A has no
/// use for it), `stride` from 8 rows to the next 8.
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

/// Keeps the compiler from moving what computes or uses these registers past this place.
template <int count>
__device__ __forceinline__ void pin(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// clang-format off
#define EIGHT(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
// clang-format on

/// d (64 x 192, FP32) = a (64 x 16) · b (16 x 192) + (accumulate ? d : 0); both in shared memory, a with
/// contiguous values of k, b with contiguous columns.
__device__ __forceinline__ void multiply_accumulate(float (&d)[96], unsigned long long a,
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
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

/// The same with 128 columns.
__device__ __forceinline__ void multiply_accumulate(float (&d)[64], unsigned long long a,
                                                    unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
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
};

/// Of the cluster's tiles in order: two wide ones and a narrow one in a band of rows, then in the next.
struct Tile {
  int row;     // the first of the block
  int column;  // the first of the tile
  bool is_wide;

  __device__ __forceinline__ Tile(int cluster, int number, int rank) {
    const int round = number / span_tiles, part = number % span_tiles;
    row = (round * bands_at_once + cluster % bands_at_once) * band + rank * tile_m;
    column = cluster / bands_at_once * span + part * wide;
    is_wide = part < span_tiles - 1;
  }
};

__device__ __forceinline__ void produce(const TensorMap& a_map, const TensorMap& b_map, unsigned shared,
                                        int rank, int cluster) {
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  RingPosition at;
#pragma unroll 1
  for (int number = 0; number < tiles; ++number) {
    const Tile tile(cluster, number, rank);
    const unsigned bytes = a_bytes + 2 * box_bytes * ((tile.is_wide ? wide : narrow) / box);
#pragma unroll 1
    for (int step = 0; step < k_steps; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned barrier = filled + at.slot * 8;
      ptx::wait_for(emptied + at.slot * 8, at.parity ^ 1);  // the first time round, none has been filled
      ptx::expect_bytes(barrier, bytes);
      ptx::load_box(a_map, step * (2 * tile_k), tile.row, stage, barrier);
      // The first block loads Bh for both, the second one Bl.
      const int b_row = rank * problem::k + step * tile_k;
      const unsigned target = stage + a_bytes + rank * factor_bytes;
#pragma unroll
      for (int j = 0; j < narrow / box; ++j) {
        ptx::load_box_for_all(b_map, tile.column + j * box, b_row, target + j * box_bytes, barrier,
                              (1 << cluster_blocks) - 1);
      }
      if (tile.is_wide) {
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

/// A warpgroup's 64 x `columns` of C, from row `row` and column `column` on.
template <int columns>
__device__ __forceinline__ void compute_tile(float* c, const int* row_exponents, unsigned shared, int group,
                                             int row, int column, RingPosition& at) {
  constexpr int count = columns / 2;
  const unsigned filled = shared + barrier_offset, emptied = filled + stages * 8;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int lane_row = row + warp * 16 + lane / 4;
  const int exponents[2] = {-row_exponents[lane_row], -row_exponents[lane_row + 8]};

  float sum[count], part[count];  // part: of a chunk
#pragma unroll
  for (int i = 0; i < count; ++i) sum[i] = 0.0f;

  // The second warpgroup's first chunk is half as long: the two add at different times.
  int begin = 0;
  int end = group == 0 ? chunk_steps : chunk_steps / 2;
#pragma unroll 1
  while (begin < k_steps) {
    int previous = 0;
#pragma unroll 1
    for (int step = begin; step < end; ++step) {
      const unsigned stage = shared + at.slot * stage_bytes;
      const unsigned long long a_high = ptx::matrix_descriptor(stage + group * (64 * 128), 16, 1024);
      const unsigned long long a_low = a_high + (tile_k * 2 >> 4);
      const unsigned long long b_high = ptx::matrix_descriptor(stage + a_bytes, box_bytes, 1024);
      const unsigned long long b_low = b_high + (factor_bytes >> 4);
      constexpr int a_next = 32 >> 4;        // 16 values of k further on
      constexpr int b_next = 16 * 128 >> 4;  // 16 rows further on
      ptx::wait_for(filled + at.slot * 8, at.parity);
      // The small products first: what is truncated is in proportion to the sum so far.
      ptx::wgmma_fence();
      ptx::multiply_accumulate(part, a_low, b_high, step > begin);
      ptx::multiply_accumulate(part, a_low + a_next, b_high + b_next, 1);
      ptx::multiply_accumulate(part, a_high, b_low, 1);
      ptx::multiply_accumulate(part, a_high + a_next, b_low + b_next, 1);
      ptx::multiply_accumulate(part, a_high, b_high, 1);
      ptx::multiply_accumulate(part, a_high + a_next, b_high + b_next, 1);
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();  // the step before
      if (step > begin) release(emptied, previous);
      previous = at.slot;
      at.advance();
    }
    ptx::wgmma_wait<0>();
    release(emptied, previous);
    ptx::pin(part);
#pragma unroll
    for (int i = 0; i < count; ++i) sum[i] += part[i];
    ptx::pin(sum);
    begin = end;
    end = min(end + chunk_steps, k_steps);
  }

  // Undoes the scaling. Two factors, since their product may lie outside FP32's range.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int half = exponents[i] >> 1;
    const float factor_1 = power_of_two(half), factor_2 = power_of_two(exponents[i] - half);
    float* target = c + static_cast<long long>(lane_row + i * 8) * problem::n + column + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
      const float x = sum[j * 4 + i * 2] * factor_1 * factor_2;
      const float y = sum[j * 4 + i * 2 + 1] * factor_1 * factor_2;
      asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(target + j * 8), "f"(x), "f"(y) : "memory");
    }
  }
}

__device__ __forceinline__ void consume(float* c, const int* row_exponents, unsigned shared, int rank,
                                        int cluster) {
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0) - 1;
  RingPosition at;
#pragma unroll 1
  for (int number = 0; number < tiles; ++number) {
    const Tile tile(cluster, number, rank);
    const int row = tile.row + group * 64;
    if (tile.is_wide) {
      compute_tile<wide>(c, row_exponents, shared, group, row, tile.column, at);
    } else {
      compute_tile<narrow>(c, row_exponents, shared, group, row, tile.column, at);
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
  const int rank = static_cast<int>(ptx::cluster_rank());
  const int cluster = blockIdx.x / cluster_blocks;
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
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(a_map, b_map, shared, rank, cluster);
    __syncwarp();
    ptx::cluster_sync();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(c, row_exponents, shared, rank, cluster);
    __syncwarp();
    ptx::cluster_sync();
  }
}
