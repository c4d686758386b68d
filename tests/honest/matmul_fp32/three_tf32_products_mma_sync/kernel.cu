#include "problem.h"

namespace {

constexpr int tile = 64;
constexpr int depth = 16;
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && problem::k % depth == 0);

struct Split {
  unsigned large, small;
};

__device__ unsigned to_tf32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ Split split(float value) {
  const unsigned large = to_tf32(value);
  return {large, to_tf32(value - __uint_as_float(large))};
}

/// d (16 x 8) += a (16 x 8) · b (8 x 8).
__device__ void multiply_accumulate(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace

/// A block of 4 warps makes 64 x 64 of c, a warp 16 x 64.
extern "C" __global__ void __launch_bounds__(128)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  using namespace problem;
  __shared__ float a_tile[tile][depth + 4];
  __shared__ float b_tile[depth][tile + 8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, in_group = lane % 4;
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;

  float sum[tile / 8][4] = {};
  for (int start = 0; start < k; start += depth) {
    for (int i = threadIdx.x; i < tile * depth; i += 128) {
      a_tile[i / depth][i % depth] = a[1ll * (first_row + i / depth) * k + start + i % depth];
      b_tile[i / tile][i % tile] = b[1ll * (start + i / tile) * n + first_column + i % tile];
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; l += 8) {
      unsigned large_a[4], small_a[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Split s =
            split(a_tile[warp * 16 + group + e % 2 * 8][l + in_group + e / 2 * 4]);
        large_a[e] = s.large;
        small_a[e] = s.small;
      }
#pragma unroll
      for (int j = 0; j < tile / 8; ++j) {
        unsigned large_b[2], small_b[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const Split s = split(b_tile[l + in_group + e * 4][j * 8 + group]);
          large_b[e] = s.large;
          small_b[e] = s.small;
        }
        multiply_accumulate(sum[j], large_a, small_b);
        multiply_accumulate(sum[j], small_a, large_b);
        multiply_accumulate(sum[j], large_a, large_b);
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < tile / 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      const long long row = first_row + warp * 16 + group + h * 8;
      *reinterpret_cast<float2*>(c + row * n + first_column + j * 8 + in_group * 2) =
          make_float2(sum[j][h * 2], sum[j][h * 2 + 1]);
    }
  }
}
