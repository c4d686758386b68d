#include <cuda_fp16.h>
#include <mma.h>

#include "problem.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int head_dim = problem::head_dim;
constexpr int queries = 64;  // of a block
constexpr int keys = 64;     // at a time
constexpr int pitch = head_dim + 8;
constexpr int score_pitch = keys + 4;
constexpr int weight_pitch = keys + 8;
static_assert(head_dim == 128 && problem::length % queries == 0 && queries == keys);

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using Transposed = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ void load_tile(__half (&target)[keys][pitch], const __half* source) {
  for (int i = threadIdx.x; i < keys * head_dim / 8; i += blockDim.x) {
    *reinterpret_cast<uint4*>(&target[i / (head_dim / 8)][i % (head_dim / 8) * 8]) =
        reinterpret_cast<const uint4*>(source)[i];
  }
}

/// A warp's 16 queries times all keys of the tile, to its own shared memory, unscaled.
__device__ void multiply_by_keys(float (*scores)[score_pitch], const __half (*query)[pitch],
                                 const __half (&key)[keys][pitch]) {
  for (int j = 0; j < keys; j += 16) {
    Sum sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int d = 0; d < head_dim; d += 16) {
      Left left;
      Transposed right;
      wmma::load_matrix_sync(left, &query[0][d], pitch);
      wmma::load_matrix_sync(right, &key[j][d], pitch);
      wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(&scores[0][j], sum, score_pitch, wmma::mem_row_major);
  }
  __syncwarp();
}

struct Shared {
  __half query[queries][pitch];
  __half key[keys][pitch];
  float score[queries][score_pitch];
  __half weight[queries][weight_pitch];
};
static_assert(sizeof(Shared) == 61440);

struct Place {
  int first_row;    // of this warp, in the tile
  int row;          // of this lane
  int half;         // which half of the row is this lane's
  int first_query;  // of the block
  int end;          // of the keys that any of its queries sees
  long long head;   // where the head starts

  __device__ Place()
      : first_row(threadIdx.x / 32 * 16),
        row(first_row + threadIdx.x % 32 / 2),
        half(threadIdx.x % 2),
        first_query(blockIdx.x * queries),
        end(problem::causal ? first_query + queries : problem::length),
        head(1ll * blockIdx.y * problem::length * head_dim) {}

  /// How many keys of a tile this lane's query sees.
  __device__ int visible(int first_key) const {
    return problem::causal ? min(keys, first_query + row - first_key + 1) : keys;
  }
};

}  // namespace

/// statistics (batch · heads · length): the largest score, unscaled, and the sum of exponentials.
extern "C" __global__ void __launch_bounds__(128)
    find_statistics(const __half* __restrict__ q, const __half* __restrict__ k,
                    float2* __restrict__ statistics) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_memory);
  const Place place;
  load_tile(shared.query, q + place.head + place.first_query * head_dim);
  float largest = minus_infinity(), total = 0.0f;
  for (int first_key = 0; first_key < place.end; first_key += keys) {
    __syncthreads();
    load_tile(shared.key, k + place.head + first_key * head_dim);
    __syncthreads();
    multiply_by_keys(&shared.score[place.first_row], &shared.query[place.first_row], shared.key);
    const float* scores = shared.score[place.row];
    const int visible = place.visible(first_key);
    float next = largest;
    for (int j = place.half; j < visible; j += 2) next = fmaxf(next, scores[j]);
    next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 1));
    total *= expf((largest - next) * float(problem::scale));
    largest = next;
    for (int j = place.half; j < visible; j += 2) {
      total += expf((scores[j] - largest) * float(problem::scale));
    }
    __syncwarp();
  }
  total += __shfl_xor_sync(0xffffffffu, total, 1);
  if (place.half == 0) {
    statistics[1ll * blockIdx.y * problem::length + place.first_query + place.row] =
        make_float2(largest, total);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    weigh_values(const __half* __restrict__ q, const __half* __restrict__ k,
                 const __half* __restrict__ v, const float2* __restrict__ statistics,
                 __half* __restrict__ o) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_memory);
  const Place place;
  const float2 own =
      statistics[1ll * blockIdx.y * problem::length + place.first_query + place.row];
  load_tile(shared.query, q + place.head + place.first_query * head_dim);

  Sum sum[head_dim / 16];
#pragma unroll
  for (int d = 0; d < head_dim / 16; ++d) wmma::fill_fragment(sum[d], 0.0f);
  for (int first_key = 0; first_key < place.end; first_key += keys) {
    __syncthreads();
    load_tile(shared.key, k + place.head + first_key * head_dim);
    __syncthreads();
    multiply_by_keys(&shared.score[place.first_row], &shared.query[place.first_row], shared.key);
    const int visible = place.visible(first_key);
    for (int j = place.half; j < keys; j += 2) {
      // Relative to the largest, so that FP16 has room: the sum divides at the end.
      const float exponent = (shared.score[place.row][j] - own.x) * float(problem::scale);
      shared.weight[place.row][j] = __float2half_rn(j < visible ? expf(exponent) : 0.0f);
    }
    __syncthreads();  // nobody reads the keys any more
    load_tile(shared.key, v + place.head + first_key * head_dim);
    __syncthreads();
    for (int j = 0; j < keys; j += 16) {
      Left left;
      wmma::load_matrix_sync(left, &shared.weight[place.first_row][j], weight_pitch);
#pragma unroll
      for (int d = 0; d < head_dim / 16; ++d) {
        Right right;
        wmma::load_matrix_sync(right, &shared.key[j][d * 16], pitch);
        wmma::mma_sync(sum[d], left, right, sum[d]);
      }
    }
  }
  // Out by way of the warp's own scores, 64 columns at a time.
#pragma unroll
  for (int part = 0; part < head_dim / keys; ++part) {
    __syncwarp();
#pragma unroll
    for (int d = 0; d < keys / 16; ++d) {
      wmma::store_matrix_sync(&shared.score[place.first_row][d * 16], sum[part * keys / 16 + d],
                              score_pitch, wmma::mem_row_major);
    }
    __syncwarp();
    for (int d = place.half; d < keys; d += 2) {
      o[place.head + (place.first_query + place.row) * head_dim + part * keys + d] =
          __float2half_rn(shared.score[place.row][d] / own.y);
    }
  }
}
