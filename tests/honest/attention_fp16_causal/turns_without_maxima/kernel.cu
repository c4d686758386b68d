// Attention forward, o = softmax(q·kᵀ · scale)·v in FP16, with or without a causal mask, for sm_90a.
//
// A block is persistent: three warpgroups, of which one brings queries, keys and values by bulk tensor
// copies and two compute, each 64 queries. Both read the same keys and values. They take turns at the
// matrix units: one issues its two products and passes the turn on, and while the other's are
// multiplied, it computes the softmax. A warpgroup issues the scores of one block of keys together with
// the product of the weights and values of the block before, so that its softmax runs under its own
// matrix work too. That goes on across the borders of tiles: the first scores of the next tile are
// made together with the last values of this one.
#include "problem.h"

namespace {

constexpr int head_dim = 128;
constexpr int tile_queries = 128;
constexpr int warpgroup_queries = 64;
constexpr int block_keys = KEYS;
constexpr int stages = STAGES;
constexpr int cluster_blocks = CLUSTER;
constexpr bool causal = problem::causal != 0;
constexpr int all_heads = problem::batch * problem::heads;
constexpr int query_tiles = problem::length / tile_queries;
constexpr int tiles = all_heads * query_tiles;
// Blocks of keys are visited from the last to the first. The last may be a part of one.
constexpr int key_blocks = (problem::length + block_keys - 1) / block_keys;
constexpr int first_keys = problem::length - (key_blocks - 1) * block_keys;
static_assert(problem::head_dim == head_dim && problem::length % tile_queries == 0);
static_assert(first_keys % 16 == 0 && block_keys % 16 == 0 && block_keys <= 256);
static_assert(!causal || (block_keys == tile_queries && cluster_blocks == 1));

constexpr int half_row_bytes = 128;  // what one swizzle atom is wide: half a row of 128 halves
constexpr int query_half_bytes = warpgroup_queries * half_row_bytes;
constexpr int query_bytes = 2 * query_half_bytes;
constexpr int key_half_bytes = block_keys * half_row_bytes;
constexpr int stage_bytes = 2 * key_half_bytes;
constexpr int query_slots = QUERY_SLOTS;
constexpr int keys_offset = query_slots * 2 * query_bytes;
constexpr int values_offset = keys_offset + stages * stage_bytes;
constexpr int barriers_offset = values_offset + stages * stage_bytes;

// Scores to powers of two.
constexpr float to_exponent = static_cast<float>(problem::scale * 1.4426950408889634);
// Weights are relative to the largest score that a query had when last looked at. FP16 has room for this
// much above it; only where a thread's sum is larger, the largest score is looked for again.
constexpr float largest_sum = 16384.0f;

/// Addresses of mbarriers in shared memory, 8 bytes each.
constexpr int queries_full = barriers_offset;
constexpr int queries_empty = queries_full + query_slots * 2 * 8;
constexpr int keys_full = queries_empty + query_slots * 2 * 8;
constexpr int keys_empty = keys_full + stages * 8;
constexpr int values_full = keys_empty + stages * 8;
constexpr int values_empty = values_full + stages * 8;
// The tile that comes next, as the producer learns of it.
constexpr int tile_slots = 2;
constexpr int tiles_full = values_empty + stages * 8;
constexpr int tiles_empty = tiles_full + tile_slots * 8;
constexpr int tiles_offset = tiles_empty + tile_slots * 8;
constexpr bool dynamic = DYNAMIC != 0;

struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

}  // namespace

namespace ptx {

#define SUMS_4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define SUMS_16(d, i) SUMS_4(d, i), SUMS_4(d, (i) + 4), SUMS_4(d, (i) + 8), SUMS_4(d, (i) + 12)

/// d (64 x n) = a · bᵀ, or += with `accumulate`; a (64 x 16) and b (n x 16) are in shared memory.
template <int n>
__device__ void multiply(float (&d)[n / 2], unsigned long long a, unsigned long long b, int accumulate);

template <>
__device__ __forceinline__ void multiply<128>(float (&d)[64], unsigned long long a,
                                             unsigned long long b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
      "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : SUMS_16(d, 0), SUMS_16(d, 16), SUMS_16(d, 32), SUMS_16(d, 48)
      : "l"(a), "l"(b), "r"(accumulate));
}
/// d (64 x 128) += a · b; a (64 x 16) is in registers, b (16 x 128) in shared memory, row by row.
__device__ __forceinline__ void multiply_registers(float (&d)[64], unsigned a0, unsigned a1,
                                                   unsigned a2, unsigned a3, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
      "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : SUMS_16(d, 0), SUMS_16(d, 16), SUMS_16(d, 32), SUMS_16(d, 48)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}

/// Registers written before this may be read by the wgmma that follow.
__device__ __forceinline__ void fence_registers() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `pending` of this warpgroup's latest groups are unfinished.
template <int pending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Keeps the compiler from moving what it does with these registers to before this point.
template <int n>
__device__ __forceinline__ void pin(float (&d)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives on the barrier at this address of another block of the cluster.
__device__ __forceinline__ void barrier_arrive_remote(unsigned barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

__device__ __forceinline__ void store_shared(unsigned address, int value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ int load_shared(unsigned address) {
  int value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Copies a box to shared memory: `half` of the columns, rows from `row`, of a head.
__device__ __forceinline__ void copy(unsigned target, const TensorMap& map, int row, int half, int head,
                                     unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(target),
      "l"(&map), "r"(0), "r"(row), "r"(half), "r"(head), "r"(barrier)
      : "memory");
}

/// The same, to both blocks of a cluster of two.
__device__ __forceinline__ void copy_to_both(unsigned target, const TensorMap& map, int row, int half,
                                             int head, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(target),
      "l"(&map), "r"(0), "r"(row), "r"(half), "r"(head), "r"(barrier), "h"(static_cast<short>(3))
      : "memory");
}

/// 2^x; 0 for minus infinity.
__device__ __forceinline__ float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Two floats to FP16, the first in the low half.
__device__ __forceinline__ unsigned pack(float low, float high) {
  unsigned result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

}  // namespace ptx

namespace {

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

struct Tile {
  int head, query_tile, blocks;
};

constexpr int heads_at_once = HEADS_AT_ONCE;

/// The tiles in the order in which they are taken.
__device__ __forceinline__ Tile tile_at(int index) {
  Tile tile;
  if (causal) {
    // The longest first, so that all end together; few heads at a time, so that their keys and values
    // stay in L2.
    constexpr int group_tiles = heads_at_once * query_tiles;
    const int in_group = index % group_tiles;
    tile.head = index / group_tiles * heads_at_once + in_group % heads_at_once;
    tile.query_tile = query_tiles - 1 - in_group / heads_at_once;
    tile.blocks = tile.query_tile + 1;
  } else {
    tile.head = index / query_tiles;
    tile.query_tile = index % query_tiles;
    tile.blocks = key_blocks;
  }
  return tile;
}

/// The index of a block's n-th tile.
__device__ __forceinline__ int nth_index(int n) {
  const int grid = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
#if SNAKE
  return n * grid + (n % 2 == 0 ? block : grid - 1 - block);
#else
  return n * grid + block;
#endif
}

/// A position in a ring of barriers and buffers.
template <int slots>
struct Slot {
  unsigned index = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++index == slots) {
      index = 0;
      parity ^= 1;
    }
  }
};

// Descriptors of operands in shared memory, with 128-byte swizzle: address / 16, leading offset / 16,
// stride offset / 16.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, int leading, int stride) {
  return (1ull << 62) | (static_cast<unsigned long long>(stride >> 4) << 32) |
         (static_cast<unsigned long long>(leading >> 4) << 16) | ((address & 0x3ffff) >> 4);
}
constexpr int eight_rows_bytes = 8 * half_row_bytes;

/// Issues scores = queries · keysᵀ for the first `keys` keys of a block.
template <int keys>
__device__ __forceinline__ void issue_scores(float (&scores)[keys / 2], unsigned queries,
                                             unsigned block) {
  const unsigned long long a = descriptor(queries, 16, eight_rows_bytes);
  const unsigned long long b = descriptor(block, 16, eight_rows_bytes);
#pragma unroll
  for (int step = 0; step < head_dim / 16; ++step) {
    const int half = step / 4, in_half = step % 4 * 32;
    ptx::multiply<keys>(scores, a + ((half * query_half_bytes + in_half) >> 4),
                        b + ((half * key_half_bytes + in_half) >> 4), step != 0);
  }
  ptx::commit_products();
}

/// Issues output += weights · values for the first `keys` keys of a block.
template <int keys>
__device__ __forceinline__ void issue_values(float (&output)[64], const unsigned (&weights)[block_keys / 4],
                                             unsigned block) {
  const unsigned long long b = descriptor(block, key_half_bytes, eight_rows_bytes);
#pragma unroll
  for (int step = 0; step < keys / 16; ++step) {
    ptx::multiply_registers(output, weights[step * 4], weights[step * 4 + 1], weights[step * 4 + 2],
                            weights[step * 4 + 3], b + (step * 2 * eight_rows_bytes >> 4));
  }
  ptx::commit_products();
}

/// Softmax of two rows, lane / 4 and lane / 4 + 8 of a warp's 16.
struct Rows {
  float offset[2];  // the exponent that weights are relative to, a whole number
  float sum[2];     // of this thread's columns
};

__device__ __forceinline__ float quad_maximum(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

/// The largest scores of the two rows.
template <int n>
__device__ __forceinline__ void row_maxima(const float (&scores)[n], float (&largest)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float low = fmaxf(scores[h * 2], scores[h * 2 + 1]);
    float high = fmaxf(scores[h * 2 + 4], scores[h * 2 + 5]);
#pragma unroll
    for (int j = 2; j < n / 4; j += 2) {
      low = fmaxf(low, fmaxf(scores[j * 4 + h * 2], scores[j * 4 + h * 2 + 1]));
      high = fmaxf(high, fmaxf(scores[j * 4 + h * 2 + 4], scores[j * 4 + h * 2 + 5]));
    }
    largest[h] = quad_maximum(fmaxf(low, high));
  }
}

/// Weights relative to the offsets, and their sums. A thread's scores are where the left operand of the
/// product with the values wants them.
template <int n>
__device__ __forceinline__ void weigh(const Rows& rows, const float (&scores)[n],
                                      unsigned (&weights)[block_keys / 4], float (&block_sum)[2]) {
  float sum[2][2] = {};
#pragma unroll
  for (int i = 0; i < n / 2; ++i) {
    const int h = i % 2;
    const float low = ptx::power_of_two(fmaf(scores[i * 2], to_exponent, -rows.offset[h]));
    const float high = ptx::power_of_two(fmaf(scores[i * 2 + 1], to_exponent, -rows.offset[h]));
    sum[h][0] += low;
    sum[h][1] += high;
    weights[i] = ptx::pack(low, high);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) block_sum[h] = sum[h][0] + sum[h][1];
}


/// Weights of a tile's first block.
template <int n>
__device__ __forceinline__ void weigh_first(Rows& rows, const float (&scores)[n],
                                            unsigned (&weights)[block_keys / 4]) {
  float largest[2];
  row_maxima(scores, largest);
#pragma unroll
  for (int h = 0; h < 2; ++h) rows.offset[h] = rintf(largest[h] * to_exponent);
  weigh(rows, scores, weights, rows.sum);
}

/// Takes away the scores of keys behind the query, in the block on the diagonal.
template <int n>
__device__ __forceinline__ void mask_diagonal(float (&scores)[n], int warpgroup) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int row = warpgroup * warpgroup_queries + warp * 16 + lane / 4;
  const int last = row - lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    if (i / 4 * 8 + i % 2 > last + i / 2 % 2 * 8) scores[i] = minus_infinity();
  }
}

__device__ __forceinline__ void swap_if(bool condition, unsigned& a, unsigned& b) {
  const unsigned first = condition ? b : a;
  b = condition ? a : b;
  a = first;
}

/// Divides by the sums and stores. The four lanes of a row exchange what they hold of four chunks, so
/// that each stores one chunk of 16 bytes.
__device__ __forceinline__ void store_output(unsigned short* o, const Tile& tile, int warpgroup,
                                             const float (&output)[64], const float (&sums)[2]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, quarter = lane % 4;
  const int row = tile.query_tile * tile_queries + warpgroup * warpgroup_queries + warp * 16 + lane / 4;
  unsigned short* to =
      o + (static_cast<long long>(tile.head) * problem::length + row) * head_dim + quarter * 8;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float factor = 1.0f / quad_sum(sums[h]);
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      unsigned chunk[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int i = (group * 4 + c) * 4 + h * 2;
        chunk[c] = ptx::pack(output[i] * factor, output[i + 1] * factor);
      }
      // A transposition of 4 x 4: first blocks of 2 x 2, then within them.
      swap_if(quarter & 2, chunk[0], chunk[2]);
      swap_if(quarter & 2, chunk[1], chunk[3]);
      chunk[2] = __shfl_xor_sync(0xffffffffu, chunk[2], 2);
      chunk[3] = __shfl_xor_sync(0xffffffffu, chunk[3], 2);
      swap_if(quarter & 2, chunk[0], chunk[2]);
      swap_if(quarter & 2, chunk[1], chunk[3]);
      swap_if(quarter & 1, chunk[0], chunk[1]);
      swap_if(quarter & 1, chunk[2], chunk[3]);
      chunk[1] = __shfl_xor_sync(0xffffffffu, chunk[1], 1);
      chunk[3] = __shfl_xor_sync(0xffffffffu, chunk[3], 1);
      swap_if(quarter & 1, chunk[0], chunk[1]);
      swap_if(quarter & 1, chunk[2], chunk[3]);
      *reinterpret_cast<uint4*>(to + h * 8 * head_dim + group * 32) =
          make_uint4(chunk[0], chunk[1], chunk[2], chunk[3]);
    }
  }
}

/// The thread that brings everything.
__device__ __forceinline__ void produce(unsigned shared, const TensorMap& q, const TensorMap& k,
                                        const TensorMap& v, unsigned* taken, unsigned rank) {
  Slot<stages> key_slot, value_slot;
  Slot<query_slots> query_slot;
  Slot<tile_slots> tile_slot;
  const auto bring = [&](Slot<stages>& slot, int offset, int full, int empty, const TensorMap& map, int block,
                         int head) {
    const unsigned barrier = shared + full + slot.index * 8;
    const unsigned target = shared + offset + slot.index * stage_bytes;
    ptx::barrier_wait(shared + empty + slot.index * 8, slot.parity ^ 1);
    ptx::barrier_expect(barrier, stage_bytes);
    if (cluster_blocks == 1) {
      ptx::copy(target, map, block * block_keys, 0, head, barrier);
      ptx::copy(target + key_half_bytes, map, block * block_keys, 1, head, barrier);
    } else {
      ptx::copy_to_both(target + rank * key_half_bytes, map, block * block_keys, rank, head, barrier);
    }
    slot.advance();
  };
  int index = nth_index(0);
  for (int n = 1; index < tiles; ++n) {
    const Tile tile = tile_at(index);
    index = nth_index(n);
    if (dynamic) index = gridDim.x + atomicAdd(taken, 1u);
    bring(key_slot, keys_offset, keys_full, keys_empty, k, tile.blocks - 1, tile.head);
    for (int w = 0; w < 2; ++w) {
      const unsigned slot = (query_slot.index * 2 + w);
      ptx::barrier_wait(shared + queries_empty + slot * 8, query_slot.parity ^ 1);
      ptx::barrier_expect(shared + queries_full + slot * 8, query_bytes);
      const int row = tile.query_tile * tile_queries + w * warpgroup_queries;
      ptx::copy(shared + slot * query_bytes, q, row, 0, tile.head, shared + queries_full + slot * 8);
    }
    query_slot.advance();
    for (int block = tile.blocks - 2; block >= 0; --block) {
      bring(key_slot, keys_offset, keys_full, keys_empty, k, block, tile.head);
      bring(value_slot, values_offset, values_full, values_empty, v, block + 1, tile.head);
    }
    bring(value_slot, values_offset, values_full, values_empty, v, 0, tile.head);
    if (dynamic) {
      ptx::barrier_wait(shared + tiles_empty + tile_slot.index * 8, tile_slot.parity ^ 1);
      ptx::store_shared(shared + tiles_offset + tile_slot.index * 4, index);
      ptx::barrier_arrive(shared + tiles_full + tile_slot.index * 8);
      tile_slot.advance();
    }
  }
}

/// One of the two warpgroups that compute.
struct Consumer {
  unsigned shared;
  int warpgroup;
  Slot<stages> key_slot, value_slot;
  Slot<query_slots> query_slot;
  Slot<tile_slots> tile_slot;

  __device__ __forceinline__ int next_index(int n) {
    if (!dynamic) return nth_index(n);
    ptx::barrier_wait(shared + tiles_full + tile_slot.index * 8, tile_slot.parity);
    int index = 0;
    if (threadIdx.x % 32 == 0) {
      index = ptx::load_shared(shared + tiles_offset + tile_slot.index * 4);
      ptx::barrier_arrive(shared + tiles_empty + tile_slot.index * 8);
    }
    tile_slot.advance();
    return __shfl_sync(0xffffffffu, index, 0);
  }
  __device__ __forceinline__ void wait_for_queries() {
    ptx::barrier_wait(shared + queries_full + (query_slot.index * 2 + warpgroup) * 8, query_slot.parity);
  }
  __device__ __forceinline__ unsigned queries() const {
    return shared + (query_slot.index * 2 + warpgroup) * query_bytes;
  }
  __device__ __forceinline__ void wait_for_keys() {
    ptx::barrier_wait(shared + keys_full + key_slot.index * 8, key_slot.parity);
  }
  __device__ __forceinline__ void wait_for_values() {
    ptx::barrier_wait(shared + values_full + value_slot.index * 8, value_slot.parity);
  }
  /// For what the next step within a tile needs.
  __device__ __forceinline__ void wait_for_next() {
    Slot<stages> next_keys = key_slot, next_values = value_slot;
    next_keys.advance();
    next_values.advance();
    ptx::barrier_wait(shared + keys_full + next_keys.index * 8, next_keys.parity);
    ptx::barrier_wait(shared + values_full + next_values.index * 8, next_values.parity);
  }
  __device__ __forceinline__ unsigned keys() const {
    return shared + keys_offset + key_slot.index * stage_bytes;
  }
  __device__ __forceinline__ unsigned values() const {
    return shared + values_offset + value_slot.index * stage_bytes;
  }
  __device__ __forceinline__ void arrive(int barrier) {
    if (cluster_blocks == 1) {
      if (threadIdx.x % 32 == 0) ptx::barrier_arrive(shared + barrier);
    } else if (threadIdx.x % 32 < cluster_blocks) {
      ptx::barrier_arrive_remote(shared + barrier, threadIdx.x % 32);
    }
  }
  __device__ __forceinline__ void release_queries() {
    if (threadIdx.x % 32 == 0) {
      ptx::barrier_arrive(shared + queries_empty + (query_slot.index * 2 + warpgroup) * 8);
    }
    query_slot.advance();
  }
  __device__ __forceinline__ void release_keys() {
    arrive(keys_empty + key_slot.index * 8);
    key_slot.advance();
  }
  __device__ __forceinline__ void release_values() {
    arrive(values_empty + value_slot.index * 8);
    value_slot.advance();
  }
  /// Named barriers 1 and 2: the turn of warpgroup 0 and 1 at the matrix units.
  __device__ __forceinline__ void take_turn() {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + warpgroup) : "memory");
  }
  __device__ __forceinline__ void pass_turn() {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 - warpgroup) : "memory");
  }

  /// Scores of the next block of keys and values of the last one, within a tile.
  template <int value_keys>
  __device__ __forceinline__ void step(float (&output)[64], unsigned (&weights)[block_keys / 4], Rows& rows,
                                       bool last) {
    float scores[block_keys / 2], factor[2];
    wait_for_keys();
    wait_for_values();
    take_turn();
    ptx::fence_registers();
    issue_scores<block_keys>(scores, queries(), keys());
    issue_values<value_keys>(output, weights, values());
    pass_turn();
    ptx::wait_for_products<1>();
    ptx::pin(scores);
    release_keys();
    if (last) release_queries();
    ptx::wait_for_products<0>();
    ptx::pin(output);
    release_values();
    float block_sum[2];
    weigh(rows, scores, weights, block_sum);
    if (__any_sync(0xffffffffu, !(fmaxf(block_sum[0], block_sum[1]) <= largest_sum))) {
      float largest[2];
      row_maxima(scores, largest);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float offset = fmaxf(rows.offset[h], rintf(largest[h] * to_exponent));
        factor[h] = ptx::power_of_two(rows.offset[h] - offset);
        rows.offset[h] = offset;
        rows.sum[h] *= factor[h];
      }
#pragma unroll
      for (int i = 0; i < 64; ++i) output[i] *= factor[i / 2 % 2];
      weigh(rows, scores, weights, block_sum);
    }
    rows.sum[0] += block_sum[0];
    rows.sum[1] += block_sum[1];
  }
};

__device__ __forceinline__ void consume(unsigned shared, int warpgroup, unsigned short* o) {
  Consumer me{shared, warpgroup};
  float output[64];
  unsigned weights[block_keys / 4];
  Rows rows;
  if (warpgroup == 1) me.pass_turn();

  int n = 0;
  Tile tile = tile_at(nth_index(0));
  {
    float scores[first_keys / 2];
    me.wait_for_queries();
    me.wait_for_keys();
    me.take_turn();
    ptx::fence_registers();
    issue_scores<first_keys>(scores, me.queries(), me.keys());
    me.pass_turn();
    ptx::wait_for_products<0>();
    ptx::pin(scores);
    me.release_keys();
    if (tile.blocks == 1) me.release_queries();
    if (causal) mask_diagonal(scores, warpgroup);
    weigh_first(rows, scores, weights);
#pragma unroll
    for (int i = 0; i < 64; ++i) output[i] = 0.0f;
  }
  while (true) {
    int left = tile.blocks - 1;
    if (first_keys != block_keys) me.step<first_keys>(output, weights, rows, --left == 0);
#pragma unroll 1
    while (left > 0) me.step<block_keys>(output, weights, rows, --left == 0);

    const int next_index = me.next_index(++n);
    if (next_index >= tiles) break;
    const Tile next = tile_at(next_index);
    const float sums[2] = {rows.sum[0], rows.sum[1]};
    float scores[first_keys / 2];
    me.wait_for_queries();
    me.wait_for_keys();
    me.wait_for_values();
    me.take_turn();
    ptx::fence_registers();
    issue_scores<first_keys>(scores, me.queries(), me.keys());
    issue_values<block_keys>(output, weights, me.values());
    me.pass_turn();
    ptx::wait_for_products<1>();
    ptx::pin(scores);
    me.release_keys();
    if (next.blocks == 1) me.release_queries();
    if (causal) mask_diagonal(scores, warpgroup);
    ptx::wait_for_products<0>();
    ptx::pin(output);
    me.release_values();
    weigh_first(rows, scores, weights);
    store_output(o, tile, warpgroup, output, sums);
#pragma unroll
    for (int i = 0; i < 64; ++i) output[i] = 0.0f;
    tile = next;
  }
  me.wait_for_values();
  me.take_turn();
  ptx::fence_registers();
  issue_values<block_keys>(output, weights, me.values());
  me.pass_turn();
  ptx::wait_for_products<0>();
  ptx::pin(output);
  store_output(o, tile, warpgroup, output, rows.sum);
  if (warpgroup == 0) me.take_turn();  // the other's last pass
}

}  // namespace

/// grid: any, a multiple of the cluster; block: 384.
extern "C" __global__ void __launch_bounds__(384, 1)
    attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
              const __grid_constant__ TensorMap v, unsigned short* __restrict__ o
#if DYNAMIC
              , unsigned* __restrict__ taken
#endif
    ) {
#if !DYNAMIC
  unsigned* const taken = nullptr;
#endif
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(shared_memory));
  const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  unsigned rank = 0;
  if (cluster_blocks > 1) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

  if (threadIdx.x == 0) {
    for (int w = 0; w < 2 * query_slots; ++w) {
      ptx::barrier_init(shared + queries_full + w * 8, 1);
      ptx::barrier_init(shared + queries_empty + w * 8, 4);
    }
    for (int s = 0; s < stages; ++s) {
      ptx::barrier_init(shared + keys_full + s * 8, 1);
      ptx::barrier_init(shared + keys_empty + s * 8, 8 * cluster_blocks);
      ptx::barrier_init(shared + values_full + s * 8, 1);
      ptx::barrier_init(shared + values_empty + s * 8, 8 * cluster_blocks);
    }
    for (int s = 0; s < tile_slots; ++s) {
      ptx::barrier_init(shared + tiles_full + s * 8, 1);
      ptx::barrier_init(shared + tiles_empty + s * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (cluster_blocks > 1) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  } else {
    __syncthreads();
  }

  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(504 - 2 * CONSUMER_REGISTERS));
    if (threadIdx.x == 0) produce(shared, q, k, v, taken, rank);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
    consume(shared, role - 1, o);
  }
  // No block leaves while the other may still copy to it or arrive on its barriers.
  if (cluster_blocks > 1) {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
}
