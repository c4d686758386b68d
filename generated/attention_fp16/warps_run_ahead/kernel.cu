// Attention forward, o = softmax(q·kᵀ · scale)·v in FP16, with or without a causal mask, for every
// GPU since sm_80. The scores never leave the registers.
//
// A block of 4 warps takes 128 queries of one head and runs over the keys and values 64 at a time. A warp
// takes twice 16 queries, one from each half, so that under the mask all warps have the same work. While
// the warps work on one tile of keys and values, cp.async brings the next one; a warp waits for data alone,
// by barriers in shared memory, not for the other warps. The softmax is computed
// online, and at first without looking for the largest score in every tile: weights are relative to the
// largest of the first tile, and FP16 has room for weights that are much larger. Only if a sum shows that
// a weight may have been too large, the block starts again and keeps track of the largest scores.
//
// That is for the sizes of the problem itself, whose constants stand below. Other sizes have a kernel of their own,
// at the end.

#include <cuda_fp16.h>

#include "problem.h"

namespace at_own_sizes {

namespace problem {
inline constexpr int batch = 4;
inline constexpr int heads = 16;
inline constexpr int length = 4096;
inline constexpr int head_dim = 128;
inline constexpr int causal = 0;
inline constexpr double scale = 0.08838834764831843;
inline constexpr int q_elements = 33554432;
inline constexpr int k_elements = 33554432;
inline constexpr int v_elements = 33554432;
inline constexpr int o_elements = 33554432;
}  // namespace problem

namespace {

constexpr int head_dim = 128;
constexpr int tile_queries = 128;
constexpr int tile_keys = 64;
constexpr int warp_queries = 32;
constexpr int threads = 128;
constexpr int heads_at_once = 16;  // so that the keys and values being read (32 MB) stay in L2
constexpr int query_tiles = problem::length / tile_queries;
static_assert(1LL * problem::batch * problem::heads * problem::length * head_dim < 1LL << 31,
              "elements are counted in 32 bits");
static_assert(problem::head_dim == head_dim && problem::length % tile_queries == 0 &&
              problem::batch * problem::heads % heads_at_once == 0);

// Shared memory: queries, then two tiles of keys, then two of values. Rows of 16 chunks of 16
// bytes.
constexpr int row_bytes = head_dim * 2;
constexpr int query_bytes = tile_queries * row_bytes;
constexpr int tile_bytes = tile_keys * row_bytes;

// Scores to powers of two.
constexpr float to_exponent = static_cast<float>(problem::scale * 1.4426950408889634);
// Where largest scores are kept track of, a query's offset may lag behind by this many powers of two. The
// output needs no rescaling in the meantime.
constexpr float largest_exponent = 8.0f;
constexpr float largest_weight = 65504.0f;  // of FP16; a sum of weights below it has none above it

}  // namespace

namespace ptx {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void copy_16_bytes_async(unsigned shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global)
               : "memory");
}

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(barrier)
               : "memory");
}

/// Arrives when all copies that this thread has asked for are there.
__device__ __forceinline__ void barrier_arrive_after_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Four 8 x 8 matrices; lanes 8i to 8i + 7 give the row addresses of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

/// d (16 x 8, FP32) += a (16 x 16) · b (16 x 8).
__device__ __forceinline__ void multiply_accumulate(float (&d)[4], const unsigned (&a)[4],
                                                    unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// 2^x; 0 for minus infinity.
__device__ __forceinline__ float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace ptx

namespace {

/// What a thread of a warp holds of its 32 queries. Block i of 16 queries; a thread has the rows
/// lane / 4 and lane / 4 + 8 of a block, and two neighbouring columns of every eight. Where a template has
/// a `first` block, it is 1 where the queries of block 0 see none of the keys.
struct State {
  float output[2][head_dim / 8][4];
  float offset[2][2];  // the exponent that weights are relative to, by block, then by row
  float sum[2][2];     // over this thread's columns only
};
using Scores = float[2][tile_keys / 8][4];

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

/// Copies a thread's chunk of every eighth of `rows` rows to shared memory.
template <int rows>
__device__ __forceinline__ void load_rows(unsigned shared, const __half* global) {
#pragma unroll
  for (int i = 0; i < rows / 8; ++i) {
    ptx::copy_16_bytes_async(shared + i * 8 * row_bytes, global + i * 8 * head_dim);
  }
}

/// scores = queries · keysᵀ. The addresses are where this lane's rows for ldmatrix start.
template <int first>
__device__ __forceinline__ void multiply_by_keys(Scores& scores, const unsigned (&queries)[2],
                                                 unsigned keys) {
#pragma unroll
  for (int i = first; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] = 0.0f;
    }
  }
#pragma unroll
  for (int step = 0; step < head_dim / 16; ++step) {
    // Two chunks further. Permuting a chunk is an exclusive or that leaves its bit 3 alone.
    const unsigned flip = step % 4 * 32, half_row = step / 4 * 128;
    unsigned a[2][4];
#pragma unroll
    for (int i = first; i < 2; ++i) {
      ptx::load_matrices(a[i], (queries[i] ^ flip) + half_row);
    }
#pragma unroll
    for (int j = 0; j < tile_keys / 16; ++j) {
      unsigned b[4];
      ptx::load_matrices(b, (keys ^ flip) + half_row + j * 16 * row_bytes);
#pragma unroll
      for (int i = first; i < 2; ++i) {
        ptx::multiply_accumulate(scores[i][j * 2], a[i], b[0], b[1]);
        ptx::multiply_accumulate(scores[i][j * 2 + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// Takes away the scores of keys that come after the query. `distances` are the blocks' first queries less
/// the tile's first key.
template <int first>
__device__ __forceinline__ void mask_later_keys(Scores& scores, const int (&distances)[2]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = first; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int last_key = distances[i] + lane / 4 - lane % 4 * 2;
        if (j * 8 + e % 2 > last_key + e / 2 * 8) scores[i][j][e] = minus_infinity();
      }
    }
  }
}

/// Where a score is much above its query's offset, the offset becomes the largest, and what was summed up
/// so far is scaled down.
template <int first>
__device__ __forceinline__ void raise_offsets(State& state, const Scores& scores) {
  float offset[2][2];
  bool raise = false;
#pragma unroll
  for (int i = first; i < 2; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float value = fmaxf(scores[i][0][h * 2], scores[i][0][h * 2 + 1]);
#pragma unroll
      for (int j = 1; j < tile_keys / 8; ++j) {
        value = fmaxf(value, fmaxf(scores[i][j][h * 2], scores[i][j][h * 2 + 1]));
      }
      value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
      value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
      offset[i][h] = fmaxf(state.offset[i][h], value * to_exponent);
      raise |= offset[i][h] - state.offset[i][h] > largest_exponent;
    }
  }
  if (!__any_sync(0xffffffffu, raise)) return;
#pragma unroll
  for (int i = first; i < 2; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // Minus infinity before the first tile, which makes the factor 0.
      const float factor = ptx::power_of_two(state.offset[i][h] - offset[i][h]);
      state.offset[i][h] = offset[i][h];
      state.sum[i][h] *= factor;
#pragma unroll
      for (int j = 0; j < head_dim / 8; ++j) {
        state.output[i][j][h * 2] *= factor;
        state.output[i][j][h * 2 + 1] *= factor;
      }
    }
  }
}

/// Turns scores into weights and adds them to the sums.
template <int first>
__device__ __forceinline__ void exponentiate(State& state, Scores& scores) {
#pragma unroll
  for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
    for (int i = first; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[i][j][e] =
            ptx::power_of_two(fmaf(scores[i][j][e], to_exponent, -state.offset[i][e / 2]));
        state.sum[i][e / 2] += scores[i][j][e];
      }
    }
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __half2 halves = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&halves);
}

/// output += weights · values. A thread's scores are where the left operand wants them.
template <int first>
__device__ __forceinline__ void multiply_by_values(State& state, const Scores& weights,
                                                   unsigned values) {
#pragma unroll
  for (int step = 0; step < tile_keys / 16; ++step) {
    unsigned a[2][4];
#pragma unroll
    for (int i = first; i < 2; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float(&pair)[4] = weights[i][step * 2 + r / 2];
        a[i][r] = pack(pair[r % 2 * 2], pair[r % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int j = 0; j < head_dim / 16; ++j) {
      unsigned b[4];
      ptx::load_matrices_transposed(b,
                                    (values ^ (j % 4 * 32)) + j / 4 * 128 + step * 16 * row_bytes);
#pragma unroll
      for (int i = first; i < 2; ++i) {
        ptx::multiply_accumulate(state.output[i][j * 2], a[i], b[0], b[1]);
        ptx::multiply_accumulate(state.output[i][j * 2 + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// A tile of keys and values. The addresses are where this lane's rows for ldmatrix start.
template <int first, class Between>
__device__ __forceinline__ void attend(State& state, const unsigned (&queries)[2], unsigned keys,
                                       unsigned values, const int (&distances)[2], bool raise,
                                       const Between& between_products) {
  Scores scores;
  multiply_by_keys<first>(scores, queries, keys);
  if (problem::causal && distances[first] < tile_keys - 1) mask_later_keys<first>(scores, distances);
  if (raise) raise_offsets<first>(state, scores);
  between_products();
  exponentiate<first>(state, scores);
  multiply_by_values<first>(state, scores, values);
}

/// Divides by the sums and stores the warp's rows, by way of the shared memory of its own queries. `rows`
/// are the first ones of its blocks.
__device__ __forceinline__ void store_output(__half* o, State& state, unsigned char* staging,
                                             const int (&rows)[2], int lane) {
  const int row = lane / 4, column_pair = lane % 4;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = state.sum[i][h];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float factor = 1.0f / sum;
#pragma unroll
      for (int j = 0; j < head_dim / 8; ++j) {
        *reinterpret_cast<__half2*>(staging + (rows[i] + h * 8 + row) * row_bytes +
                                    (j ^ row) * 16 + column_pair * 4) =
            __floats2half2_rn(state.output[i][j][h * 2] * factor,
                              state.output[i][j][h * 2 + 1] * factor);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < warp_queries / 2; ++i) {
    const int line = rows[i / 8] + i % 8 * 2 + lane / 16, chunk = lane % 16;
    *reinterpret_cast<uint4*>(o + line * head_dim + chunk * 8) =
        *reinterpret_cast<const uint4*>(staging + line * row_bytes + (chunk ^ (line % 8)) * 16);
  }
}

}  // namespace

/// grid: batch · heads · length / 128; block: 128; dynamic shared memory: 98304 bytes.
extern "C" __global__ void __launch_bounds__(threads, 2)
    attention(const __half* __restrict__ q, const __half* __restrict__ k,
              const __half* __restrict__ v, __half* __restrict__ o) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  constexpr int group_blocks = heads_at_once * query_tiles;
  const int group = blockIdx.x / group_blocks, in_group = blockIdx.x % group_blocks;
  const int head = group * heads_at_once + in_group % heads_at_once;
  // With a mask, later queries have more keys: the longest work first, to end evenly.
  const int query_tile =
      problem::causal ? query_tiles - 1 - in_group / heads_at_once : in_group / heads_at_once;
  const int first_query = query_tile * tile_queries;
  const int rows[2] = {warp * 16, tile_queries - 16 - warp * 16};
  const int key_tiles =
      problem::causal ? (first_query + tile_queries) / tile_keys : problem::length / tile_keys;
  const unsigned head_start = static_cast<unsigned>(head) * problem::length * head_dim;
  const unsigned query_start = head_start + first_query * head_dim;

  // What this thread copies. The chunks of a row are permuted in shared memory, so that the 8 rows
  // that ldmatrix reads at a time lie in different banks.
  const int copy_row = threadIdx.x / 16, copy_chunk = threadIdx.x % 16;
  const unsigned copy_source = copy_row * head_dim + copy_chunk * 8;
  const unsigned copy_target = copy_row * row_bytes + (copy_chunk ^ copy_row) * 16;

  // This lane's row addresses for ldmatrix. Queries: 16 rows, then the same rows one chunk on;
  // keys: 8 rows, the same one chunk on, then 8 more rows; values as queries.
  const unsigned query_lane_offset = lane % 16 * row_bytes + ((lane / 16) ^ (lane % 8)) * 16;
  const unsigned key_lane_offset =
      (lane / 16 * 8 + lane % 8) * row_bytes + ((lane / 8 % 2) ^ (lane % 8)) * 16;
  const unsigned value_lane_offset = lane % 16 * row_bytes + ((lane / 16) ^ (lane % 8)) * 16;

  const unsigned queries = ptx::shared_address(shared_memory);
  const unsigned lane_queries[2] = {queries + rows[0] * row_bytes + query_lane_offset,
                                    queries + rows[1] * row_bytes + query_lane_offset};
  const unsigned keys = queries + query_bytes;
  const unsigned values = keys + 2 * tile_bytes;
  // A slot is full when every thread's copies are there, empty when every thread has read it. So a warp may
  // be most of a tile ahead of the others.
  __shared__ unsigned long long barriers[4];
  const unsigned full = ptx::shared_address(barriers), empty = full + 16;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) ptx::barrier_init(full + i * 8, threads);
  }
  __syncthreads();
  load_rows<tile_queries>(queries + copy_target, q + query_start + copy_source);

  State state;
  int visit = 0;  // tiles so far, those of a first attempt too; an even number for each attempt
  for (bool careful = false;; careful = true) {
    state = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) state.offset[i][h] = minus_infinity();
    }
    unsigned next = head_start + copy_source;  // element of k and v to copy from
    load_rows<tile_keys>(keys + copy_target, k + next);
    load_rows<tile_keys>(values + copy_target, v + next);
    ptx::barrier_arrive_after_copies(full);
#pragma unroll 1
    for (int tile = 0; tile < key_tiles; ++tile, ++visit) {
      const unsigned index = tile % 2, slot = index * tile_bytes;
      // Asks for the next tile; called between the two products, when the others have long left its slot.
      const auto bring_next = [&] {
        if (tile + 1 >= key_tiles) return;
        const unsigned other = index ^ 1;
        if (visit > 0) ptx::barrier_wait(empty + other * 8, (visit - 1) / 2 % 2);
        next += tile_keys * head_dim;
        load_rows<tile_keys>(keys + (tile_bytes - slot) + copy_target, k + next);
        load_rows<tile_keys>(values + (tile_bytes - slot) + copy_target, v + next);
        ptx::barrier_arrive_after_copies(full + other * 8);
      };
      const int distance = first_query - tile * tile_keys;
      const int distances[2] = {distance + rows[0], distance + rows[1]};
      const unsigned tile_start = keys + slot + key_lane_offset;
      const unsigned values_start = values + slot + value_lane_offset;
      const bool raise = careful || tile == 0;
      ptx::barrier_wait(full + index * 8, visit / 2 % 2);
      if (problem::causal && distance < 0) {
        attend<1>(state, lane_queries, tile_start, values_start, distances, raise, bring_next);
      } else {
        attend<0>(state, lane_queries, tile_start, values_start, distances, raise, bring_next);
      }
      ptx::barrier_arrive(empty + index * 8);
    }
    const float largest = fmaxf(fmaxf(state.sum[0][0], state.sum[0][1]),
                                fmaxf(state.sum[1][0], state.sum[1][1]));
    if (!__syncthreads_or(!(largest <= largest_weight)) || careful) break;
  }

  store_output(o + query_start, state, shared_memory, rows, lane);
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

// A warp a query; a lane has four of 128 elements. Sums are taken relative to the largest score so far.
extern "C" __global__ void __launch_bounds__(128)
    attention_of_any_length(const __half* q, const __half* k, const __half* v, __half* o) {
  using namespace problem;
  static_assert(head_dim == 128, "four elements a lane");
  const int lane = threadIdx.x % 32;
  const long long query = 4ll * blockIdx.x + threadIdx.x / 32;
  if (query >= 1ll * batch * heads * length) return;
  const long long first = query / length * length;  // the key that its head begins with
  const int last = length - 1;
  const auto four = [&](const __half* from, long long row) {
    const __half2* pairs = reinterpret_cast<const __half2*>(from + row * head_dim) + 2 * lane;
    const float2 low = __half22float2(pairs[0]), high = __half22float2(pairs[1]);
    return make_float4(low.x, low.y, high.x, high.y);
  };
  const float4 mine = four(q, query);
  float4 sum = {};
  float largest = -__int_as_float(0x7f800000), total = 0.0f;
  for (int j = 0; j <= last; ++j) {
    const float4 key = four(k, first + j);
    float score = mine.x * key.x + mine.y * key.y + mine.z * key.z + mine.w * key.w;
    for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
    score *= static_cast<float>(scale);
    const float now = fmaxf(largest, score);
    const float before = expf(largest - now), weight = expf(score - now);
    const float4 value = four(v, first + j);
    sum = {sum.x * before + weight * value.x, sum.y * before + weight * value.y,
           sum.z * before + weight * value.z, sum.w * before + weight * value.w};
    total = total * before + weight;
    largest = now;
  }
  __half2* result = reinterpret_cast<__half2*>(o + query * head_dim) + 2 * lane;
  result[0] = __floats2half2_rn(sum.x / total, sum.y / total);
  result[1] = __floats2half2_rn(sum.z / total, sum.w / total);
}
