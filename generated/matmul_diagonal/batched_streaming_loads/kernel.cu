#include "problem.h"

namespace {

constexpr unsigned block_vectors = THREADS * VECTORS;      // float4 of a block
constexpr unsigned row_vectors = problem::columns / 4;     // float4 of a row
constexpr unsigned blocks_per_row = row_vectors / block_vectors;

static_assert(problem::columns % 4 == 0, "rows are whole float4");
static_assert(row_vectors % block_vectors == 0, "a block stays within one row");

__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ float load_scalar(const float* p) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}

__device__ __forceinline__ float4 load_stream(const float4* p, unsigned long long policy) {
  float4 v;
  asm volatile(
      "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "l"(p), "l"(policy));
  return v;
}

__device__ __forceinline__ void store_result(float4* p, float4 v, unsigned long long policy) {
#if STORE_POLICY == 2
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "l"(policy)
               : "memory");
#elif STORE_POLICY == 1
  __stcs(p, v);
#else
  *p = v;
#endif
}

}  // namespace

// c[i, j] = diagonal[i] * b[i, j]
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
make_c(const float* __restrict__ diagonal, const float4* __restrict__ b, float4* __restrict__ c) {
  const unsigned long long policy = evict_first_policy();
  const unsigned first = blockIdx.x * block_vectors + threadIdx.x;
  const float4* source = b + first;
  float4* target = c + first;

  // All loads are issued before the first use of any of them.
  const float factor = load_scalar(diagonal + blockIdx.x / blocks_per_row);
  float4 v[VECTORS];
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) v[k] = load_stream(source + k * THREADS, policy);

#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    float4 r;
    r.x = factor * v[k].x;
    r.y = factor * v[k].y;
    r.z = factor * v[k].z;
    r.w = factor * v[k].w;
    store_result(target + k * THREADS, r, policy);
  }
}
