// Softmax over rows of 65536 floats. A row (256 KB) is read from memory once and kept on the chip
// until its result is written: 160 KB in registers, 96 KB in shared memory. One thread block a
// multiprocessor walks over the rows; as soon as a piece of the current row is written, the same
// piece of the next row is requested into its place, so that reads and writes overlap. Loads and
// stores carry no cache hints: L2 collects and drains whole lines best in its own order.
//
// That is for the sizes of the problem itself, whose constants stand below. Other sizes have a kernel of their own,
// at the end.

#include "problem.h"

namespace at_own_sizes {

namespace problem {
inline constexpr int rows = 4096;
inline constexpr int columns = 65536;
inline constexpr int x_elements = 268435456;
inline constexpr int y_elements = 268435456;
}  // namespace problem

namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int row_quads = problem::columns / 4;
constexpr int thread_quads = row_quads / threads;
constexpr int shared_quads = 12;
constexpr int register_quads = thread_quads - shared_quads;
static_assert(problem::columns == threads * thread_quads * 4, "a row divides evenly");
static_assert(thread_quads == 32, "20 quads in registers and 12 in shared memory fill the chip");

constexpr float log2_e = 1.4426950408889634f;

__device__ float exp2_approximate(float exponent) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
}

/// e^(value − reference). Subtracts before it scales: with large inputs a product with log2(e)
/// would lose the difference.
__device__ float exponential(float value, float reference) {
  return exp2_approximate((value - reference) * log2_e);
}

__device__ void copy_async(float4* shared, const float4* global) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

__device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ float largest(const float4& quad) {
  return fmaxf(fmaxf(quad.x, quad.y), fmaxf(quad.z, quad.w));
}

__device__ float total(const float4& quad) { return (quad.x + quad.y) + (quad.z + quad.w); }

__device__ float4 exponentials(const float4& quad, float reference) {
  return {exponential(quad.x, reference), exponential(quad.y, reference),
          exponential(quad.z, reference), exponential(quad.w, reference)};
}

__device__ float4 scaled(const float4& quad, float factor) {
  return {quad.x * factor, quad.y * factor, quad.z * factor, quad.w * factor};
}

/// A maximum and the sum of e^(x − maximum) over some elements.
struct Partial {
  float maximum;
  float sum;
};

/// Merges what `lanes` neighbouring lanes hold; every one of them gets the result.
template <int lanes>
__device__ Partial merge_lanes(Partial own) {
  float maximum = own.maximum;
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, distance));
  }
  float sum = own.sum * exponential(own.maximum, maximum);
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  return {maximum, sum};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    softmax(const float* __restrict__ x, float* __restrict__ y) {
  // [shared_quads][threads]; a thread touches its own column only, so no barrier guards it.
  extern __shared__ float4 staged[];
  __shared__ Partial partials[2][warps];

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  int row = blockIdx.x;
  if (row >= problem::rows) return;

  const float4* source = reinterpret_cast<const float4*>(x) + thread;
  float4* destination = reinterpret_cast<float4*>(y) + thread;
  float4* own_staged = staged + thread;

  float4 held[register_quads];
  {
    const float4* from = source + static_cast<long long>(row) * row_quads;
#pragma unroll
    for (int q = 0; q < shared_quads; ++q) copy_async(own_staged + q * threads, from + q * threads);
#pragma unroll
    for (int q = 0; q < register_quads; ++q) held[q] = __ldg(from + (shared_quads + q) * threads);
  }

  for (int parity = 0;; parity ^= 1) {
    // Exponentials relative to the thread's own maximum, so that one exchange between the threads
    // (of maxima and sums together) is enough.
    wait_for_copies();
    float thread_maximum = largest(held[0]);
#pragma unroll
    for (int q = 1; q < register_quads; ++q) {
      thread_maximum = fmaxf(thread_maximum, largest(held[q]));
    }
#pragma unroll 3
    for (int q = 0; q < shared_quads; ++q) {
      thread_maximum = fmaxf(thread_maximum, largest(own_staged[q * threads]));
    }
    // Keeps −infinity − (−infinity) out of the exponent.
    thread_maximum = fmaxf(thread_maximum, -3.402823466e38f);

    float sum = 0.0f;
#pragma unroll 3
    for (int q = 0; q < shared_quads; ++q) {
      const float4 quad = exponentials(own_staged[q * threads], thread_maximum);
      own_staged[q * threads] = quad;
      sum += total(quad);
    }
#pragma unroll
    for (int q = 0; q < register_quads; ++q) {
      held[q] = exponentials(held[q], thread_maximum);
      sum += total(held[q]);
    }

    // Two sets of partials take turns, so that one barrier a row is enough.
    const Partial of_warp = merge_lanes<32>({thread_maximum, sum});
    if (lane == 0) partials[parity][warp] = of_warp;
    __syncthreads();
    const Partial of_row = merge_lanes<warps>(partials[parity][lane % warps]);
    const float factor = exponential(thread_maximum, of_row.maximum) / of_row.sum;

    float4* to = destination + static_cast<long long>(row) * row_quads;
    row += gridDim.x;
    const bool more = row < problem::rows;
    const float4* from = source + static_cast<long long>(row) * row_quads;
#pragma unroll 3
    for (int q = 0; q < shared_quads; ++q) {
      to[q * threads] = scaled(own_staged[q * threads], factor);
      if (more) copy_async(own_staged + q * threads, from + q * threads);
    }
#pragma unroll
    for (int q = 0; q < register_quads; ++q) {
      to[(shared_quads + q) * threads] = scaled(held[q], factor);
      if (more) held[q] = __ldg(from + (shared_quads + q) * threads);
    }
    if (!more) return;
  }
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

/// The sum or the largest of a value of each of 256 threads, in all of them.
template <class Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float of_warp[8];
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float result = of_warp[0];
  for (int warp = 1; warp < 8; ++warp) result = combine(result, of_warp[warp]);
  return result;
}

// A block a row, in three passes.
extern "C" __global__ void __launch_bounds__(256) softmax_of_any_row(const float* x, float* y) {
  const long long first = 1ll * blockIdx.x * problem::columns;
  float largest = -__int_as_float(0x7f800000);
  for (int i = threadIdx.x; i < problem::columns; i += 256) largest = fmaxf(largest, x[first + i]);
  largest = over_block(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0f;
  for (int i = threadIdx.x; i < problem::columns; i += 256) sum += expf(x[first + i] - largest);
  sum = over_block(sum, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < problem::columns; i += 256) {
    y[first + i] = expf(x[first + i] - largest) / sum;
  }
}
