namespace own {

// The constants of the problem's own sizes, in place of problem.h.
namespace problem {
inline constexpr int batch = 4096;
inline constexpr int features = 32768;
inline constexpr int x_elements = 134217728;
inline constexpr int y_elements = 134217728;
}  // namespace problem

// One float4 per thread; the grid covers the tensor exactly.
static_assert(1ll * BLOCKS * THREADS * 4 == problem::x_elements, "the grid must cover x exactly");
static_assert(problem::x_elements == problem::y_elements, "elementwise");

constexpr unsigned long long kPageBytes = 2ull << 20;
constexpr unsigned long long kTensorBytes = 4ull * problem::x_elements;
constexpr unsigned kBlocksPerPage = static_cast<unsigned>(kPageBytes / (THREADS * 16));

static_assert(kPageBytes % (THREADS * 16) == 0, "whole blocks in a page");
static_assert((LINES & (LINES - 1)) == 0 && LINES >= 1, "a power of two");
static_assert(TOUCHERS <= kBlocksPerPage && AHEAD_PAGES >= 1, "touches go forward");

// Returns nothing, and nothing waits for it.
__device__ __forceinline__ void touch(unsigned long long address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

// gelu(x) = max(x, 0) - |x| * Phi(-|x|), and Phi(-s) = 2^q(s)
__device__ __forceinline__ float gelu(float x) {
  const float s = fminf(fabsf(x), 16.0f);  // avoids infinity times zero
  float q = fmaf(-2.20418304e-6f, s, 6.91045742e-5f);
  q = fmaf(q, s, -9.90546318e-4f);
  q = fmaf(q, s, 8.74800568e-3f);
  q = fmaf(q, s, -5.44641622e-2f);
  q = fmaf(q, s, -4.57945084e-1f);
  q = fmaf(q, s, -1.15144926f);
  q = fmaf(q, s, -1.0f);
  float tail;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(tail) : "f"(q));
  float relu;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(relu) : "f"(x), "f"(0.0f));  // keeps NaN
  return fmaf(-s, tail, relu);
}

// No __restrict__: the load stays an ordinary one, not the non-coherent one.
extern "C" __global__ void __launch_bounds__(THREADS, 2048 / THREADS)
gelu_touch(const float* x, float* y) {
  const unsigned i = blockIdx.x * static_cast<unsigned>(THREADS) + threadIdx.x;
  const float4 v = reinterpret_cast<const float4*>(x)[i];

  // The load is on its way; the memory clobber in touch() keeps it in front of what follows.
  if (blockIdx.x % kBlocksPerPage < static_cast<unsigned>(TOUCHERS)) {
    if (threadIdx.x < 2) {
      // Lane 0: a page of x, lane 1: a page of y.
      const unsigned long long base = static_cast<unsigned long long>(
          threadIdx.x == 0 ? __cvta_generic_to_global(x) : __cvta_generic_to_global(y));
      const unsigned long long own =
          base + static_cast<unsigned long long>(blockIdx.x) * (THREADS * 16u);
      const unsigned long long target = (own & ~(kPageBytes - 1)) + AHEAD_PAGES * kPageBytes +
                                        (blockIdx.x & (LINES - 1u)) * 128u;
      if (target < base + kTensorBytes) touch(target);
    }
  }

  // Cold start: fetch the translation of y while the first load still waits for that of x.
  if (blockIdx.x < static_cast<unsigned>(FIRST_WAVE)) {
    if (threadIdx.x == 0) {
      touch(static_cast<unsigned long long>(
          __cvta_generic_to_global(reinterpret_cast<float4*>(y) + i)));
    }
  }

  float4 r;
  r.x = gelu(v.x);
  r.y = gelu(v.y);
  r.z = gelu(v.z);
  r.w = gelu(v.w);
  reinterpret_cast<float4*>(y)[i] = r;
}

}  // namespace own

namespace any_size {

// gelu(x) = max(x, 0) - |x| * erfc(|x| / sqrt(2)) / 2, relatively accurate in the tail too.
__device__ __forceinline__ float gelu(float x) {
  const float s = fminf(fabsf(x), 16.0f);  // avoids infinity times zero
  const float tail = 0.5f * erfcf(s * 0.707106781186547524f);
  float relu;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(relu) : "f"(x), "f"(0.0f));  // keeps NaN
  return fmaf(-s, tail, relu);
}

// Any number of elements, any grid, any alignment of the tensors.
extern "C" __global__ void gelu_any(const float* x, float* y, long long elements) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool aligned = ((reinterpret_cast<unsigned long long>(x) |
                         reinterpret_cast<unsigned long long>(y)) & 15ull) == 0;
  const long long quads = aligned ? elements / 4 : 0;

  for (long long i = first; i < quads; i += threads) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    float4 r;
    r.x = gelu(v.x);
    r.y = gelu(v.y);
    r.z = gelu(v.z);
    r.w = gelu(v.w);
    reinterpret_cast<float4*>(y)[i] = r;
  }

  // What whole float4s do not cover.
  for (long long i = quads * 4 + first; i < elements; i += threads) y[i] = gelu(x[i]);
}

}  // namespace any_size
