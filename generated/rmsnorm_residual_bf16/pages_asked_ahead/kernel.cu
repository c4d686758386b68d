#include <cuda_bf16.h>

#include "problem.h"

constexpr int kThreads = THREADS;
constexpr int kResident = RESIDENT;  // blocks of a multiprocessor
constexpr int kDistance = DISTANCE;  // rows between a block's own row and the one it prefetches
constexpr int kWarps = kThreads / 32;
constexpr int kVectors = problem::channels / 8;  // 16-byte vectors of a row
constexpr int kEach = kVectors / kThreads;       // vectors of a thread
constexpr int kRowBytes = problem::channels * 2;

static_assert(kThreads % 128 == 0, "the last sum reads whole float4");
static_assert(kEach * kThreads == kVectors, "a row is split evenly over the threads");
static_assert(kRowBytes % 16 == 0, "bulk prefetches take multiples of 16 bytes");
static_assert(kDistance > 0, "the prefetch runs ahead");

// Called by a whole warp: one elected lane asks for both rows to be brought into L2.
__device__ __forceinline__ void prefetch_rows(const uint4* first, const uint4* second) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "@p cp.async.bulk.prefetch.L2.global [%0], %2;\n"
      "@p cp.async.bulk.prefetch.L2.global [%1], %2;\n"
      "}\n"
      :
      : "l"(__cvta_generic_to_global(first)), "l"(__cvta_generic_to_global(second)), "r"(kRowBytes));
}

__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Read once: not kept in L1, first to leave L2.
__device__ __forceinline__ uint4 load_stream(const uint4* from, unsigned long long policy) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from), "l"(policy));
  return v;
}

// Read by every block: cached as usual. Volatile, so that it stays ahead of the barrier.
__device__ __forceinline__ uint4 load_shared_by_all(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ float low(unsigned pair) { return __uint_as_float(pair << 16); }

__device__ __forceinline__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ unsigned add_pair(unsigned a, unsigned b) {
  const __nv_bfloat162 sum =
      __hadd2(*reinterpret_cast<const __nv_bfloat162*>(&a), *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const unsigned*>(&sum);
}

__device__ __forceinline__ float square_pair(unsigned pair) {
  const float a = low(pair);
  const float b = high(pair);
  return fmaf(a, a, b * b);
}

__device__ __forceinline__ unsigned scaled_pair(unsigned pair, float scale, unsigned weights) {
  const __nv_bfloat162 result =
      __floats2bfloat162_rn(low(pair) * scale * low(weights), high(pair) * scale * high(weights));
  return *reinterpret_cast<const unsigned*>(&result);
}

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
    rmsnorm_residual(const uint4* __restrict__ x, const uint4* __restrict__ residual,
                     const uint4* __restrict__ weight, uint4* __restrict__ total,
                     uint4* __restrict__ y) {
  __shared__ __align__(16) float partial[kWarps];

  // First of all, the reads of a later block start: the same for all lanes of warp 0.
  const int ahead = static_cast<int>(blockIdx.x) + kDistance;
  if (threadIdx.x < 32 && ahead < problem::tokens) {
    prefetch_rows(x + ahead * kVectors, residual + ahead * kVectors);
  }

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int at = static_cast<int>(blockIdx.x) * kVectors + static_cast<int>(threadIdx.x);

  const unsigned long long policy = evict_first_policy();
  uint4 a[kEach];
  uint4 b[kEach];
  uint4 w[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    a[i] = load_stream(x + at + i * kThreads, policy);
    b[i] = load_stream(residual + at + i * kThreads, policy);
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) w[i] = load_shared_by_all(weight + threadIdx.x + i * kThreads);

  uint4 t[kEach];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    t[i].x = add_pair(a[i].x, b[i].x);
    t[i].y = add_pair(a[i].y, b[i].y);
    t[i].z = add_pair(a[i].z, b[i].z);
    t[i].w = add_pair(a[i].w, b[i].w);
    total[at + i * kThreads] = t[i];
    sum += (square_pair(t[i].x) + square_pair(t[i].y)) + (square_pair(t[i].z) + square_pair(t[i].w));
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();

  // Every thread adds the same values in the same order; the reads are broadcasts.
  const float4* parts = reinterpret_cast<const float4*>(partial);
  float all = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps / 4; ++i) {
    const float4 p = parts[i];
    all += (p.x + p.y) + (p.z + p.w);
  }
  const float scale =
      rsqrtf(fmaf(all, 1.0f / static_cast<float>(problem::channels), static_cast<float>(problem::eps)));

#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    uint4 out;
    out.x = scaled_pair(t[i].x, scale, w[i].x);
    out.y = scaled_pair(t[i].y, scale, w[i].y);
    out.z = scaled_pair(t[i].z, scale, w[i].z);
    out.w = scaled_pair(t[i].w, scale, w[i].w);
    y[at + i * kThreads] = out;
  }
}
