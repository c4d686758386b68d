#include "problem.h"

// ---------------------------------------------------------------------------------------------
// The problem's own sizes: launched only there. The constants are fixed, so that it compiles at
// any size; inside this namespace `problem` is the one right below, not that of problem.h.
// ---------------------------------------------------------------------------------------------
namespace own_size {

namespace problem {
inline constexpr int batch = 8;
inline constexpr int channels = 64;
inline constexpr int height = 512;
inline constexpr int width = 512;
inline constexpr double eps = 1e-05;
inline constexpr int x_elements = 134217728;
inline constexpr int y_elements = 134217728;
}  // namespace problem

// PIXELS:       consecutive pixels of one block (a multiple of 128)
// GROUPS:       channel groups of one block; a thread owns channels / GROUPS channels
// MIN_BLOCKS:   blocks that have to fit on a multiprocessor
// LOAD_POLICY:  0 default, 1 L2 evict-first, 2 L2 evict-first for half of the lines
// STORE_POLICY: 0 default write-back, 1 streaming, 2 L2 evict-first
// FETCH:        L2 fetch hint of the loads in bytes: 0 (none), 128 or 256

namespace {

constexpr int kLanes = PIXELS / 4;                        // threads across the pixels
constexpr int kThreads = kLanes * GROUPS;
constexpr int kOwn = problem::channels / GROUPS;          // channels of a thread
constexpr int kHalf = kOwn / 2;                           // bias of the base pointers
constexpr unsigned kPlane = static_cast<unsigned>(problem::height) * problem::width;
constexpr unsigned kTiles = kPlane / PIXELS;              // blocks of an image

static_assert(PIXELS % 128 == 0, "whole warps across the pixels; rows are multiples of 256 bytes");
static_assert(problem::channels % GROUPS == 0, "equal channel groups");
static_assert(kPlane % PIXELS == 0, "whole tiles");
static_assert(kThreads <= 1024, "threads of a block");
static_assert(LOAD_POLICY >= 0 && LOAD_POLICY <= 2, "load policy");
static_assert(STORE_POLICY >= 0 && STORE_POLICY <= 2, "store policy");
static_assert(FETCH == 0 || FETCH == 128 || FETCH == 256, "fetch hint");

#if FETCH == 256
#define FETCH_HINT ".L2::256B"
#elif FETCH == 128
#define FETCH_HINT ".L2::128B"
#else
#define FETCH_HINT ""
#endif

__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ unsigned long long half_evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 0.5;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ float4 load_once(const float* p, unsigned long long policy) {
  float4 v;
#if LOAD_POLICY == 0
  (void)policy;
  asm volatile("ld.global.nc.L1::no_allocate" FETCH_HINT ".v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
#else
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint" FETCH_HINT
               ".v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p), "l"(policy));
#endif
  return v;
}

__device__ __forceinline__ void store_once(float* p, const float4& v, unsigned long long policy) {
#if STORE_POLICY == 0
  (void)policy;
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
#elif STORE_POLICY == 1
  (void)policy;
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
#else
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "l"(policy)
               : "memory");
#endif
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
rmsnorm_fused(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float4 partial[GROUPS][kLanes];

  const unsigned lane = threadIdx.x % static_cast<unsigned>(kLanes);
  const unsigned group = threadIdx.x / static_cast<unsigned>(kLanes);
  const unsigned image = blockIdx.x / kTiles;
  const unsigned tile = blockIdx.x % kTiles;

  // Element of this thread's first pixel in the middle one of its channels, so that all plane
  // offsets fit the immediates of the instructions. Less than 2^27 elements: 32 bits are enough.
  const unsigned middle =
      (image * static_cast<unsigned>(problem::channels) + group * static_cast<unsigned>(kOwn) +
       static_cast<unsigned>(kHalf)) * kPlane +
      tile * static_cast<unsigned>(PIXELS) + lane * 4u;

  unsigned long long load_policy = 0;
#if LOAD_POLICY == 1
  load_policy = evict_first_policy();
#elif LOAD_POLICY == 2
  load_policy = half_evict_first_policy();
#endif

  // All reads of the block in one batch.
  const float* source = x + middle;
  float4 v[kOwn];
#pragma unroll
  for (int c = 0; c < kOwn; ++c) {
    v[c] = load_once(source + static_cast<long long>(c - kHalf) * static_cast<long long>(kPlane),
                     load_policy);
  }

  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int c = 0; c < kOwn; ++c) {
    sum.x = fmaf(v[c].x, v[c].x, sum.x);
    sum.y = fmaf(v[c].y, v[c].y, sum.y);
    sum.z = fmaf(v[c].z, v[c].z, sum.z);
    sum.w = fmaf(v[c].w, v[c].w, sum.w);
  }
  partial[group][lane] = sum;
  __syncthreads();

  // The same fixed order in every thread: deterministic.
  float4 total = partial[0][lane];
#pragma unroll
  for (int g = 1; g < GROUPS; ++g) {
    const float4 other = partial[g][lane];
    total.x += other.x;
    total.y += other.y;
    total.z += other.z;
    total.w += other.w;
  }

  constexpr float inverse = 1.0f / static_cast<float>(problem::channels);
  constexpr float epsilon = static_cast<float>(problem::eps);
  const float sx = rsqrtf(fmaf(total.x, inverse, epsilon));
  const float sy = rsqrtf(fmaf(total.y, inverse, epsilon));
  const float sz = rsqrtf(fmaf(total.z, inverse, epsilon));
  const float sw = rsqrtf(fmaf(total.w, inverse, epsilon));

  unsigned long long store_policy = 0;
#if STORE_POLICY == 2
  store_policy = evict_first_policy();
#endif

  // All writes of the block in one batch, back to back in plane order.
#pragma unroll
  for (int c = 0; c < kOwn; ++c) {
    v[c].x *= sx;
    v[c].y *= sy;
    v[c].z *= sz;
    v[c].w *= sw;
  }
  float* target = y + middle;
#pragma unroll
  for (int c = 0; c < kOwn; ++c) {
    store_once(target + static_cast<long long>(c - kHalf) * static_cast<long long>(kPlane), v[c],
               store_policy);
  }
}

}  // namespace own_size

// ---------------------------------------------------------------------------------------------
// All other sizes: right for any batch, channels, height and width of at least 1.
// ---------------------------------------------------------------------------------------------
namespace any_size {

constexpr int kColumns = 32;                              // pixels of a block: one warp across
constexpr int kWarps = 8;                                 // warps that share the channels
constexpr long long kChannels = ::problem::channels;
constexpr long long kPlane =
    static_cast<long long>(::problem::height) * static_cast<long long>(::problem::width);
constexpr long long kPixels = static_cast<long long>(::problem::batch) * kPlane;

}  // namespace any_size

extern "C" __global__ void __launch_bounds__(256)
rmsnorm_any(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ double squares[any_size::kWarps][any_size::kColumns];

  const int column = static_cast<int>(threadIdx.x) % any_size::kColumns;
  const int warp = static_cast<int>(threadIdx.x) / any_size::kColumns;
  const long long step = static_cast<long long>(gridDim.x) * any_size::kColumns;

  // The bounds are the same for all threads of a block, so all of them reach the barriers.
  for (long long first = static_cast<long long>(blockIdx.x) * any_size::kColumns;
       first < any_size::kPixels; first += step) {
    const long long pixel = first + column;
    const bool inside = pixel < any_size::kPixels;
    const long long image = pixel / any_size::kPlane;
    const long long place = pixel % any_size::kPlane;
    const long long base = image * any_size::kChannels * any_size::kPlane + place;

    double sum = 0.0;
    if (inside) {
#pragma unroll 4
      for (long long c = warp; c < any_size::kChannels; c += any_size::kWarps) {
        const double value = static_cast<double>(x[base + c * any_size::kPlane]);
        sum += value * value;
      }
    }
    squares[warp][column] = sum;
    __syncthreads();

    // The same fixed order in every thread: deterministic.
    double total = 0.0;
#pragma unroll
    for (int w = 0; w < any_size::kWarps; ++w) total += squares[w][column];
    const double mean = total / static_cast<double>(any_size::kChannels);
    const double scale = 1.0 / sqrt(mean + static_cast<double>(::problem::eps));

    if (inside) {
#pragma unroll 4
      for (long long c = warp; c < any_size::kChannels; c += any_size::kWarps) {
        const long long at = base + c * any_size::kPlane;
        y[at] = static_cast<float>(static_cast<double>(x[at]) * scale);
      }
    }
    __syncthreads();  // the sums are overwritten in the next round
  }
}
