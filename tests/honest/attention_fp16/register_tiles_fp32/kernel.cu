#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int head_dim = problem::head_dim;
constexpr int tile = 64;  // queries of a block, and keys at a time
constexpr int lanes = 16;  // threads that share a row
constexpr int score_pitch = tile + 1;
constexpr int row_pitch = head_dim + 1;
static_assert(head_dim == 128 && problem::length % tile == 0);

struct Shared {
  float query[tile][row_pitch];
  float key[tile][row_pitch];  // then the values of the same positions
  float weight[tile][score_pitch];
};
static_assert(sizeof(Shared) == 82688);

__device__ void load_tile(float (&target)[tile][row_pitch], const __half* source) {
  for (int i = threadIdx.x; i < tile * head_dim; i += blockDim.x) {
    target[i / head_dim][i % head_dim] = __half2float(source[i]);
  }
}

template <class Combine>
__device__ float over_row(float value, Combine combine) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

}  // namespace

/// grid: (length / 64, batch · heads); block: 256; dynamic shared memory: sizeof(Shared).
extern "C" __global__ void __launch_bounds__(256)
    attention(const __half* __restrict__ q, const __half* __restrict__ k,
              const __half* __restrict__ v, __half* __restrict__ o) {
  using problem::causal, problem::length, problem::scale;
  extern __shared__ __align__(16) unsigned char shared_memory[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_memory);
  const int row = threadIdx.x / lanes * 4, lane = threadIdx.x % lanes;
  const int first_query = blockIdx.x * tile;
  const long long head = 1ll * blockIdx.y * length * head_dim;
  const int end = causal ? first_query + tile : length;
  const float minus_infinity = __int_as_float(0xff800000);

  load_tile(shared.query, q + head + first_query * head_dim);
  float largest[4], total[4] = {}, sum[4][8] = {};
  for (int i = 0; i < 4; ++i) largest[i] = minus_infinity;

  for (int first_key = 0; first_key < end; first_key += tile) {
    __syncthreads();
    load_tile(shared.key, k + head + first_key * head_dim);
    __syncthreads();
    float score[4][4] = {};
    for (int d = 0; d < head_dim; ++d) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = shared.query[row + i][d];
#pragma unroll
      for (int j = 0; j < 4; ++j) right[j] = shared.key[lane + j * lanes][d];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) score[i][j] = fmaf(left[i], right[j], score[i][j]);
      }
    }
    __syncthreads();
    load_tile(shared.key, v + head + first_key * head_dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float mine = minus_infinity;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool hidden = causal && first_key + lane + j * lanes > first_query + row + i;
        score[i][j] = hidden ? minus_infinity : score[i][j] * float(scale);
        mine = fmaxf(mine, score[i][j]);
      }
      // The first key of a tile is visible to all its queries, so the maximum is finite.
      const float next =
          fmaxf(largest[i], over_row(mine, [](float x, float y) { return fmaxf(x, y); }));
      const float shrink = expf(largest[i] - next);
      largest[i] = next;
      float weights = 0.0f;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(score[i][j] - next);
        shared.weight[row + i][lane + j * lanes] = weight;
        weights += weight;
      }
      total[i] = total[i] * shrink + over_row(weights, [](float x, float y) { return x + y; });
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[i][j] *= shrink;
    }
    __syncthreads();
    for (int l = 0; l < tile; ++l) {
      float left[4], right[8];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = shared.weight[row + i][l];
#pragma unroll
      for (int j = 0; j < 8; ++j) right[j] = shared.key[l][lane + j * lanes];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) {
      o[head + (first_query + row + i) * head_dim + lane + j * lanes] =
          __float2half_rn(sum[i][j] / total[i]);
    }
  }
}
