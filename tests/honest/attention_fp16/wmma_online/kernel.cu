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
  __half key[keys][pitch];  // then the values of the same positions
  float score[queries][score_pitch];
  __half weight[queries][weight_pitch];
  float output[queries][pitch];
};
static_assert(sizeof(Shared) == 96256);

}  // namespace

/// grid: (length / 64, batch · heads); block: 128; dynamic shared memory: sizeof(Shared).
extern "C" __global__ void __launch_bounds__(128)
    attention(const __half* __restrict__ q, const __half* __restrict__ k,
              const __half* __restrict__ v, __half* __restrict__ o) {
  using problem::causal, problem::length, problem::scale;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = warp * 16;           // of this warp, in the tile
  const int row = first_row + lane / 2;      // of this lane
  const int half = lane % 2;                 // which half of the row is this lane's
  const int first_query = blockIdx.x * queries;
  const long long head = 1ll * blockIdx.y * length * head_dim;
  const int end = causal ? first_query + queries : length;

  load_tile(shared.query, q + head + first_query * head_dim);
  for (int d = half; d < head_dim; d += 2) shared.output[row][d] = 0.0f;
  float largest = minus_infinity(), total = 0.0f;

  for (int first_key = 0; first_key < end; first_key += keys) {
    __syncthreads();
    load_tile(shared.key, k + head + first_key * head_dim);
    __syncthreads();
    multiply_by_keys(&shared.score[first_row], &shared.query[first_row], shared.key);

    const int visible = causal ? min(keys, first_query + row - first_key + 1) : keys;
    float mine = minus_infinity();
    for (int j = half; j < visible; j += 2) mine = fmaxf(mine, shared.score[row][j]);
    mine = fmaxf(mine, __shfl_xor_sync(0xffffffffu, mine, 1));
    const float next = fmaxf(largest, mine);
    const float shrink = expf((largest - next) * float(scale));
    largest = next;
    float weights = 0.0f;
    for (int j = half; j < keys; j += 2) {
      const float weight = j < visible ? expf((shared.score[row][j] - next) * float(scale)) : 0.0f;
      shared.weight[row][j] = __float2half_rn(weight);
      weights += weight;
    }
    weights += __shfl_xor_sync(0xffffffffu, weights, 1);
    total = total * shrink + weights;
    for (int d = half; d < head_dim; d += 2) shared.output[row][d] *= shrink;
    __syncthreads();  // nobody reads the keys any more
    load_tile(shared.key, v + head + first_key * head_dim);
    __syncthreads();

    for (int d = 0; d < head_dim; d += 16) {
      Sum sum;
      wmma::load_matrix_sync(sum, &shared.output[first_row][d], pitch, wmma::mem_row_major);
      for (int j = 0; j < keys; j += 16) {
        Left left;
        Right right;
        wmma::load_matrix_sync(left, &shared.weight[first_row][j], weight_pitch);
        wmma::load_matrix_sync(right, &shared.key[j][d], pitch);
        wmma::mma_sync(sum, left, right, sum);
      }
      wmma::store_matrix_sync(&shared.output[first_row][d], sum, pitch, wmma::mem_row_major);
    }
    __syncwarp();
  }
  for (int d = half; d < head_dim; d += 2) {
    o[head + (first_query + row) * head_dim + d] = __float2half_rn(shared.output[row][d] / total);
  }
}
