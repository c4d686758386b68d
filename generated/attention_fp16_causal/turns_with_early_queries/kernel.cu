// Attention forward, o = softmax(q·kᵀ · scale)·v in FP16, with or without a causal mask, for sm_90a.
//
// A persistent block has three warpgroups. One brings queries, keys and values by bulk tensor copies; the
// other two compute, each 64 of the tile's 128 queries, on the same keys and values. They take turns at
// the matrix units: one issues the scores of a block of keys together with the product of the weights and
// values of the block before, passes the turn on, and makes the next weights while the other's products
// run. This goes on across the borders of tiles.
//
// Weights are relative to the largest score of a query's first block of keys. FP16 has room for weights
// that are much larger, so no later block is searched for its maximum, and the output is not rescaled: a
// sum of weights shows if one may have been too large, and only then the block's largest scores are
// looked for and its weights made anew, from scores that are still in registers.
#include "problem.h"

namespace {

constexpr int head_dim = 128;
constexpr int warpgroup_queries = 64;
constexpr int tile_queries = 2 * warpgroup_queries;
constexpr int block_keys = 128;
constexpr int query_slots = 2, key_slots = 2, value_slots = 3, tile_slots = 2;
constexpr int warps_of_both = 8;
constexpr int heads_at_once = 16;  // with a mask, so that the keys and values in use (32 MB) stay in L2
constexpr bool causal = problem::causal != 0;
constexpr int heads = problem::batch * problem::heads;
constexpr int query_tiles = problem::length / tile_queries;
constexpr int tiles = heads * query_tiles;
static_assert(problem::head_dim == head_dim && problem::length % block_keys == 0);
static_assert(tile_queries == block_keys, "a tile's last block of keys is on the diagonal");
static_assert(heads % heads_at_once == 0);

// Shared memory, all in rows of 64 halves with 128-byte swizzle: a tensor's row is in two such halves.
constexpr int half_row_bytes = 128;
constexpr int eight_rows_bytes = 8 * half_row_bytes;
constexpr int query_half_bytes = warpgroup_queries * half_row_bytes;
constexpr int query_bytes = 2 * query_half_bytes;
constexpr int block_half_bytes = block_keys * half_row_bytes;
constexpr int block_bytes = 2 * block_half_bytes;
constexpr int keys_offset = query_slots * 2 * query_bytes;
constexpr int values_offset = keys_offset + key_slots * block_bytes;
// Behind them the barriers of 8 bytes: a slot is full when its copy has arrived, empty when all warps
// that read it have arrived.
constexpr int queries_full = values_offset + value_slots * block_bytes;  // of a slot: two, by warpgroup
constexpr int queries_empty = queries_full + query_slots * 2 * 8;
constexpr int keys_full = queries_empty + query_slots * 2 * 8;
constexpr int keys_empty = keys_full + key_slots * 8;
constexpr int values_full = keys_empty + key_slots * 8;
constexpr int values_empty = values_full + value_slots * 8;
constexpr int tiles_full = values_empty + value_slots * 8;
constexpr int tiles_empty = tiles_full + tile_slots * 8;
constexpr int tile_indices = tiles_empty + tile_slots * 8;

// Scores to powers of two.
constexpr float to_exponent = static_cast<float>(problem::scale * 1.4426950408889634);
// Above this, a sum of weights (of a thread, in a row and block) may have one that FP16 cannot hold.
constexpr float largest_sum = 16384.0f;

struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

}  // namespace

namespace ptx {

#define SUMS_4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define SUMS_16(d, i) SUMS_4(d, i), SUMS_4(d, (i) + 4), SUMS_4(d, (i) + 8), SUMS_4(d, (i) + 12)
#define SUMS_64(d) SUMS_16(d, 0), SUMS_16(d, 16), SUMS_16(d, 32), SUMS_16(d, 48)
#define REGISTERS_64                                                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "   \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "    \
  "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "    \
  "%56, %57, %58, %59, %60, %61, %62, %63}"

/// d (64 x 128) = a · bᵀ, or += with `accumulate`; a (64 x 16) and b (128 x 16) are in shared memory.
__device__ __forceinline__ void multiply_shared(float (&d)[64], unsigned long long a,
                                                unsigned long long b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS_64
      ", %64, %65, p, 1, 1, 0, 0;\n}"
      : SUMS_64(d)
      : "l"(a), "l"(b), "r"(accumulate));
}

/// d (64 x 128) += a · b; a (64 x 16) is in registers, b (16 x 128) in shared memory, row by row.
__device__ __forceinline__ void multiply_registers(float (&d)[64], unsigned a0, unsigned a1,
                                                   unsigned a2, unsigned a3, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS_64
               ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : SUMS_64(d)
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
__device__ __forceinline__ void pin(float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
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

__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Copies a box, both halves of rows from `row` on of a head, to shared memory.
__device__ __forceinline__ void copy(unsigned target, const TensorMap& map, int row, int head,
                                     unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {0, %2, 0, %3}], [%4];" ::"r"(target),
      "l"(&map), "r"(row), "r"(head), "r"(barrier)
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
  int head, query_tile;
  int blocks;  // of keys; they are visited from the last to the first
};

/// The tiles in the order in which they are taken.
__device__ __forceinline__ Tile tile_at(int index) {
  if (!causal) return {index / query_tiles, index % query_tiles, problem::length / block_keys};
  // The longest first, so that all blocks end together.
  constexpr int group_tiles = heads_at_once * query_tiles;
  const int in_group = index % group_tiles;
  const int query_tile = query_tiles - 1 - in_group / heads_at_once;
  return {index / group_tiles * heads_at_once + in_group % heads_at_once, query_tile, query_tile + 1};
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

/// One thread brings everything, and takes tiles for the whole block: the first by the block's index, then
/// whichever is next when it has issued the copies of one.
struct Producer {
  unsigned shared;
  Slot<query_slots> query_slot;
  Slot<key_slots> key_slot;
  Slot<value_slots> value_slot;
  Slot<tile_slots> tile_slot;

  template <int slots>
  __device__ __forceinline__ void bring(Slot<slots>& slot, int offset, int full, int empty,
                                        const TensorMap& map, int block, int head) {
    ptx::barrier_wait(shared + empty + slot.index * 8, slot.parity ^ 1);
    ptx::barrier_expect(shared + full + slot.index * 8, block_bytes);
    ptx::copy(shared + offset + slot.index * block_bytes, map, block * block_keys, head,
              shared + full + slot.index * 8);
    slot.advance();
  }
  __device__ __forceinline__ void bring_queries(const TensorMap& q, const Tile& tile) {
    for (int warpgroup = 0; warpgroup < 2; ++warpgroup) {
      const unsigned part = query_slot.index * 2 + warpgroup;
      ptx::barrier_wait(shared + queries_empty + part * 8, query_slot.parity ^ 1);
      ptx::barrier_expect(shared + queries_full + part * 8, query_bytes);
      ptx::copy(shared + part * query_bytes, q,
                tile.query_tile * tile_queries + warpgroup * warpgroup_queries, tile.head,
                shared + queries_full + part * 8);
    }
    query_slot.advance();
  }
  __device__ __forceinline__ void tell_next(int index) {
    ptx::barrier_wait(shared + tiles_empty + tile_slot.index * 8, tile_slot.parity ^ 1);
    ptx::store_shared(shared + tile_indices + tile_slot.index * 4, index);
    ptx::barrier_arrive(shared + tiles_full + tile_slot.index * 8);
    tile_slot.advance();
  }

  __device__ __forceinline__ void run(const TensorMap& q, const TensorMap& k, const TensorMap& v,
                                      unsigned* taken) {
    int index = blockIdx.x;
    bring_queries(q, tile_at(index));
    while (index < tiles) {
      const Tile tile = tile_at(index);
      index = static_cast<int>(gridDim.x + atomicAdd(taken, 1u));
      bring(key_slot, keys_offset, keys_full, keys_empty, k, tile.blocks - 1, tile.head);
      for (int block = tile.blocks - 1; block >= 0; --block) {
        if (block > 0) bring(key_slot, keys_offset, keys_full, keys_empty, k, block - 1, tile.head);
        // Queries come from memory, not from L2, so the next tile's are asked for well before its keys.
        if (block == 0 && index < tiles) bring_queries(q, tile_at(index));
        bring(value_slot, values_offset, values_full, values_empty, v, block, tile.head);
      }
      tell_next(index);
    }
  }
};

/// An operand in shared memory for wgmma, with 128-byte swizzle.
__device__ __forceinline__ unsigned long long operand(unsigned address, int leading_bytes) {
  constexpr unsigned long long swizzle_128 = 1ull << 62;
  return swizzle_128 | static_cast<unsigned long long>(eight_rows_bytes >> 4) << 32 |
         static_cast<unsigned long long>(leading_bytes >> 4) << 16 | (address & 0x3ffff) >> 4;
}

/// Issues scores = queries · keysᵀ.
__device__ __forceinline__ void issue_scores(float (&scores)[64], unsigned queries, unsigned keys) {
  const unsigned long long a = operand(queries, 16), b = operand(keys, 16);
#pragma unroll
  for (int step = 0; step < head_dim / 16; ++step) {
    const int half = step / 4, in_half = step % 4 * 32;
    ptx::multiply_shared(scores, a + ((half * query_half_bytes + in_half) >> 4),
                         b + ((half * block_half_bytes + in_half) >> 4), step != 0);
  }
  ptx::commit_products();
}

/// Issues output += weights · values.
__device__ __forceinline__ void issue_values(float (&output)[64], const unsigned (&weights)[32],
                                             unsigned values) {
  const unsigned long long b = operand(values, block_half_bytes);
#pragma unroll
  for (int step = 0; step < block_keys / 16; ++step) {
    ptx::multiply_registers(output, weights[step * 4], weights[step * 4 + 1], weights[step * 4 + 2],
                            weights[step * 4 + 3], b + (step * 2 * eight_rows_bytes >> 4));
  }
  ptx::commit_products();
}

/// A thread has two rows, lane / 4 and lane / 4 + 8 of its warp's 16, and two neighbouring columns of
/// every eight: of four registers two for each row.
struct Rows {
  float offset[2];  // the exponent that weights are relative to
  float sum[2];     // of this thread's weights
};

__device__ __forceinline__ float quad_maximum(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

__device__ __forceinline__ void find_largest(const float (&scores)[64], float (&largest)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float even = minus_infinity(), odd = minus_infinity();  // two chains, for their latency
#pragma unroll
    for (int i = 0; i < 64; i += 8) {
      even = fmaxf(even, fmaxf(scores[i + h * 2], scores[i + h * 2 + 1]));
      odd = fmaxf(odd, fmaxf(scores[i + 4 + h * 2], scores[i + 4 + h * 2 + 1]));
    }
    largest[h] = quad_maximum(fmaxf(even, odd));
  }
}

/// Weights relative to the offsets, and their sums. A thread's scores are where the left operand of the
/// product with the values wants them.
__device__ __forceinline__ void weigh(const Rows& rows, const float (&scores)[64],
                                      unsigned (&weights)[32], float (&sums)[2]) {
  float sum[2][2] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int h = i % 2;
    const float low = ptx::power_of_two(fmaf(scores[i * 2], to_exponent, -rows.offset[h]));
    const float high = ptx::power_of_two(fmaf(scores[i * 2 + 1], to_exponent, -rows.offset[h]));
    sum[h][0] += low;
    sum[h][1] += high;
    weights[i] = ptx::pack(low, high);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) sums[h] = sum[h][0] + sum[h][1];
}

/// Takes away the scores of keys behind the query, in the block on the diagonal.
__device__ __forceinline__ void mask_later_keys(float (&scores)[64], int warpgroup) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int row = warpgroup * warpgroup_queries + warp * 16 + lane / 4;
  const int last_key = row - lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    if (i / 4 * 8 + i % 2 > last_key + i / 2 % 2 * 8) scores[i] = minus_infinity();
  }
}

__device__ __forceinline__ void swap_if(bool condition, unsigned& a, unsigned& b) {
  const unsigned first = condition ? b : a;
  b = condition ? a : b;
  a = first;
}

/// Divides by the sums and stores. The four lanes of a row exchange what they hold of four chunks of 8
/// columns, so that each stores a chunk of 16 bytes.
__device__ __forceinline__ void store_output(unsigned short* o, const Tile& tile, int warpgroup,
                                             const float (&output)[64], const float (&sums)[2]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, quarter = lane % 4;
  const int row =
      tile.query_tile * tile_queries + warpgroup * warpgroup_queries + warp * 16 + lane / 4;
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
#pragma unroll
      for (int distance = 2; distance > 0; distance /= 2) {
        const bool upper = quarter & distance;
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          const int a = distance == 2 ? pair : pair * 2, b = a + distance;
          swap_if(upper, chunk[a], chunk[b]);
          chunk[b] = __shfl_xor_sync(0xffffffffu, chunk[b], distance);
          swap_if(upper, chunk[a], chunk[b]);
        }
      }
      *reinterpret_cast<uint4*>(to + h * 8 * head_dim + group * 32) =
          make_uint4(chunk[0], chunk[1], chunk[2], chunk[3]);
    }
  }
}

/// One of the two warpgroups that compute.
struct Consumer {
  unsigned shared;
  int warpgroup;
  Slot<query_slots> query_slot;
  Slot<key_slots> key_slot;
  Slot<value_slots> value_slot;
  Slot<tile_slots> tile_slot;
  float output[64];
  unsigned weights[32];
  Rows rows;

  __device__ __forceinline__ unsigned query_part() const { return query_slot.index * 2 + warpgroup; }
  __device__ __forceinline__ void wait_for_queries() {
    ptx::barrier_wait(shared + queries_full + query_part() * 8, query_slot.parity);
  }
  __device__ __forceinline__ void wait_for_keys() {
    ptx::barrier_wait(shared + keys_full + key_slot.index * 8, key_slot.parity);
  }
  __device__ __forceinline__ void wait_for_values() {
    ptx::barrier_wait(shared + values_full + value_slot.index * 8, value_slot.parity);
  }
  __device__ __forceinline__ void release(int barrier) {
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(shared + barrier);
  }
  __device__ __forceinline__ void release_queries() {
    release(queries_empty + query_part() * 8);
    query_slot.advance();
  }
  __device__ __forceinline__ void release_keys() {
    release(keys_empty + key_slot.index * 8);
    key_slot.advance();
  }
  __device__ __forceinline__ void release_values() {
    release(values_empty + value_slot.index * 8);
    value_slot.advance();
  }
  __device__ __forceinline__ int next_index() {
    ptx::barrier_wait(shared + tiles_full + tile_slot.index * 8, tile_slot.parity);
    int index = 0;
    if (threadIdx.x % 32 == 0) {
      index = ptx::load_shared(shared + tile_indices + tile_slot.index * 4);
      ptx::barrier_arrive(shared + tiles_empty + tile_slot.index * 8);
    }
    tile_slot.advance();
    return __shfl_sync(0xffffffffu, index, 0);
  }
  /// Named barriers 1 and 2: the turns of warpgroups 0 and 1 at the matrix units.
  __device__ __forceinline__ void take_turn() {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + warpgroup) : "memory");
  }
  __device__ __forceinline__ void pass_turn() {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 - warpgroup) : "memory");
  }

  __device__ __forceinline__ void issue_scores_in_slot(float (&scores)[64]) {
    issue_scores(scores, shared + query_part() * query_bytes,
                 shared + keys_offset + key_slot.index * block_bytes);
  }
  __device__ __forceinline__ void issue_values_in_slot() {
    issue_values(output, weights, shared + values_offset + value_slot.index * block_bytes);
  }

  __device__ __forceinline__ void start_rows(float (&scores)[64]) {
    if (causal) mask_later_keys(scores, warpgroup);
    float largest[2];
    find_largest(scores, largest);
#pragma unroll
    for (int h = 0; h < 2; ++h) rows.offset[h] = largest[h] * to_exponent;
    weigh(rows, scores, weights, rows.sum);
  }
  __device__ __forceinline__ void clear_output() {
#pragma unroll
    for (int i = 0; i < 64; ++i) output[i] = 0.0f;
  }

  /// The first scores of the first tile.
  __device__ __forceinline__ void start(const Tile& tile) {
    float scores[64];
    wait_for_queries();
    wait_for_keys();
    take_turn();
    ptx::fence_registers();
    issue_scores_in_slot(scores);
    pass_turn();
    ptx::wait_for_products<0>();
    ptx::pin(scores);
    release_keys();
    if (tile.blocks == 1) release_queries();
    start_rows(scores);
    clear_output();
  }

  /// Makes the block's weights anew, relative to scores as large as they occur, and scales down what was
  /// summed up so far.
  __device__ __forceinline__ void raise_offsets(const float (&scores)[64], float (&sums)[2]) {
    float largest[2], factor[2];
    find_largest(scores, largest);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float offset = fmaxf(rows.offset[h], largest[h] * to_exponent);
      factor[h] = ptx::power_of_two(rows.offset[h] - offset);
      rows.offset[h] = offset;
      rows.sum[h] *= factor[h];
    }
#pragma unroll
    for (int i = 0; i < 64; ++i) output[i] *= factor[i / 2 % 2];
    weigh(rows, scores, weights, sums);
  }

  /// Scores of the next block of keys, values of this one. `last`: the next is the last of the tile.
  __device__ __forceinline__ void step(bool last) {
    float scores[64], sums[2];
    wait_for_keys();
    wait_for_values();
    take_turn();
    ptx::fence_registers();
    issue_scores_in_slot(scores);
    issue_values_in_slot();
    pass_turn();
    ptx::wait_for_products<1>();
    ptx::pin(scores);
    release_keys();
    if (last) release_queries();
    // The compiler puts most exponentials before this wait, the rest, sums and packing behind it.
    ptx::wait_for_products<0>();
    ptx::pin(output);
    release_values();
    weigh(rows, scores, weights, sums);
    if (__any_sync(0xffffffffu, !(fmaxf(sums[0], sums[1]) <= largest_sum))) {
      raise_offsets(scores, sums);
    }
    rows.sum[0] += sums[0];
    rows.sum[1] += sums[1];
  }

  /// The first scores of the next tile, the last values of this one.
  __device__ __forceinline__ void cross(const Tile& tile, const Tile& next, unsigned short* o) {
    const float sums[2] = {rows.sum[0], rows.sum[1]};
    float scores[64];
    wait_for_queries();
    wait_for_keys();
    wait_for_values();
    take_turn();
    ptx::fence_registers();
    issue_scores_in_slot(scores);
    issue_values_in_slot();
    pass_turn();
    ptx::wait_for_products<1>();
    ptx::pin(scores);
    release_keys();
    if (next.blocks == 1) release_queries();
    ptx::wait_for_products<0>();
    ptx::pin(output);
    release_values();
    start_rows(scores);
    store_output(o, tile, warpgroup, output, sums);
    clear_output();
  }

  /// The last values of the last tile.
  __device__ __forceinline__ void finish(const Tile& tile, unsigned short* o) {
    wait_for_values();
    take_turn();
    ptx::fence_registers();
    issue_values_in_slot();
    pass_turn();
    ptx::wait_for_products<0>();
    ptx::pin(output);
    store_output(o, tile, warpgroup, output, rows.sum);
  }

  __device__ __forceinline__ void run(unsigned short* o) {
    if (warpgroup == 1) pass_turn();
    Tile tile = tile_at(blockIdx.x);
    start(tile);
    while (true) {
#pragma unroll 1
      for (int left = tile.blocks - 1; left > 0; --left) step(left == 1);
      const int index = next_index();
      if (index >= tiles) break;
      const Tile next = tile_at(index);
      cross(tile, next, o);
      tile = next;
    }
    finish(tile, o);
    if (warpgroup == 0) take_turn();  // so that no arrival is left behind
  }
};

}  // namespace

/// grid: up to the number of tiles, a block a multiprocessor; block: 384; dynamic shared memory: 229,600
/// bytes. `taken` is 0: how many tiles were taken beyond the first of each block.
extern "C" __global__ void __launch_bounds__(384, 1)
    attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
              const __grid_constant__ TensorMap v, unsigned short* __restrict__ o,
              unsigned* __restrict__ taken) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(shared_memory));
  // The same for a warp, which the compiler cannot see otherwise.
  const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);

  if (threadIdx.x == 0) {
    for (int i = 0; i < 2 * query_slots; ++i) {
      ptx::barrier_init(shared + queries_full + i * 8, 1);
      ptx::barrier_init(shared + queries_empty + i * 8, warps_of_both / 2);
    }
    for (int i = 0; i < key_slots; ++i) {
      ptx::barrier_init(shared + keys_full + i * 8, 1);
      ptx::barrier_init(shared + keys_empty + i * 8, warps_of_both);
    }
    for (int i = 0; i < value_slots; ++i) {
      ptx::barrier_init(shared + values_full + i * 8, 1);
      ptx::barrier_init(shared + values_empty + i * 8, warps_of_both);
    }
    for (int i = 0; i < tile_slots; ++i) {
      ptx::barrier_init(shared + tiles_full + i * 8, 1);
      ptx::barrier_init(shared + tiles_empty + i * 8, warps_of_both);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) Producer{shared}.run(q, k, v, taken);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    Consumer{shared, role - 1}.run(o);
  }
}
