// C = A·B in FP32, from two FP16 products with FP32 accumulation, for every GPU since sm_80.
//
// With a small power of two w, P = f16((1 - w)A), X = f16(A - P), Q = f16(B) and Y = f16(Q + (B - Q)/w): X is
// nearly wA, so X·Y adds to P·Q both the part wA·Q of the product that P leaves out and the part A·(B - Q)
// that the rounding of B loses. Both products run as one of depth 2k, the small one first, since the matrix
// unit truncates in proportion to the sum so far.
//
// 1. split_b: a block a row of B, scaled by a power of two of its own.
// 2. split_a: a block a row of A. The scales of B's rows belong to A's columns and are undone here; then the
//    row gets a power of two of its own. So every input is read once, and any size fits FP16's range.
// 3. multiply_matrices. The factors are stored as images of what shared memory holds for a step, in the order in which
//    a block needs them, so that every copy is of whole lines, one behind the other.
//    A block of 8 warps computes 128 x 256 of C, a warp 64 x 64, from a ring of four slots; the loop is unrolled
//    over the slots. Of the two warps on each scheduler only one copies, so that they fall out of step: one
//    multiplies while the other one stands in the queue of copies.
#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int tile_m = 128;
constexpr int tile_n = 256;
constexpr int tile_k = 32;
constexpr int slots = 4;
constexpr int threads = 256;
constexpr int copying_warps = 4;  // the last ones: one on each scheduler
constexpr int group_m = 16;  // tile rows that run side by side: about square, for reuse in L2

constexpr int k_steps = 2 * problem::k / tile_k;  // of both products
constexpr int tiles_n = problem::n / tile_n;
static_assert(problem::m % (tile_m * group_m) == 0 && problem::n % tile_n == 0 &&
              problem::k % tile_k == 0 && k_steps % slots == 0);

constexpr float w = 1.0f / 64;
constexpr int split_threads = 256;
constexpr int split_columns = split_threads * 4;  // that a block splits at once
static_assert(problem::k % split_columns == 0 && problem::n % split_columns == 0);

constexpr int a_row_bytes = tile_k * 2;
constexpr int b_row_bytes = tile_n * 2;
constexpr int a_bytes = tile_m * a_row_bytes;
constexpr int b_bytes = tile_k * b_row_bytes;
constexpr int slot_bytes = a_bytes + b_bytes;

}  // namespace

namespace ptx {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void copy_16_bytes_async(unsigned shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global)
               : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `pending` of this thread's latest groups are unfinished.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
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

}  // namespace ptx

namespace {

/// What a thread holds of a warp's 64 x 16 of A and 16 x 64 of B.
struct Fragments {
  unsigned a[4][4];  // by 16 rows
  unsigned b[4][4];  // by 16 columns: registers 0 and 1 for the first 8, 2 and 3 for the last 8
};

/// Copies the block's images of A and B into slots, step after step: each of the warps that copy a quarter of both.
class Copier {
 public:
  /// `thread` counts those that copy.
  __device__ Copier(const char* a_images, const char* b_images, unsigned first_slot, int thread) {
    const int a_offset = thread / 32 * (a_bytes / copying_warps) + thread % 32 * 16;
    const int b_offset = thread / 32 * (b_bytes / copying_warps) + thread % 32 * 16;
    a_ = a_images + a_offset;
    b_ = b_images + b_offset;
    a_to_ = first_slot + a_offset;
    b_to_ = first_slot + a_bytes + b_offset;
  }

  __device__ __forceinline__ void copy_next(int slot) {
    const unsigned to = slot * slot_bytes;
#pragma unroll
    for (int i = 0; i < a_bytes / copying_warps; i += 512) ptx::copy_16_bytes_async(a_to_ + to + i, a_ + i);
#pragma unroll
    for (int i = 0; i < b_bytes / copying_warps; i += 512) ptx::copy_16_bytes_async(b_to_ + to + i, b_ + i);
    a_ += a_bytes;
    b_ += b_bytes;
  }

 private:
  const char* a_;
  const char* b_;
  unsigned a_to_, b_to_;
};

/// `step` counts k-steps of 16 within the slot.
__device__ __forceinline__ void load_fragments(Fragments& fragments, unsigned slot, int step,
                                               unsigned a_lane_offset, unsigned b_lane_offset) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    ptx::load_matrices(fragments.a[i], slot + (a_lane_offset ^ (step * 32)) + i * 16 * a_row_bytes);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    ptx::load_matrices_transposed(fragments.b[j],
                                  slot + (b_lane_offset ^ (j * 32)) + step * 16 * b_row_bytes);
  }
}

__device__ __forceinline__ void multiply(float (&sum)[4][8][4], const Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      ptx::multiply_accumulate(sum[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2],
                               fragments.b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

__device__ __forceinline__ unsigned half_pair(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float2 float_pair(unsigned pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

/// For exponents from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

/// The power of two, as an exponent, that brings values up to `maximum` below 2^15. Y exceeds B by little, so
/// it stays below FP16's 65504, and all that matters is far above FP16's subnormals.
__device__ __forceinline__ int scale_exponent(float maximum) {
  const int exponent = static_cast<int>(__float_as_uint(maximum) >> 23) - 127;
  return maximum == 0.0f ? 126 : min(14 - exponent, 126);
}

__device__ __forceinline__ float largest_magnitude(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/// The maximum over the block, for every thread. `partial` (shared) is one value a warp.
template <class Value>
__device__ __forceinline__ Value block_maximum(Value value, Value* partial) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  Value maximum = partial[0];
#pragma unroll
  for (int warp = 1; warp < split_threads / 32; ++warp) maximum = max(maximum, partial[warp]);
  return maximum;
}

/// Two numbers as (P, X) or (Q, Y), in pairs.
struct Split {
  unsigned large;
  unsigned small;
};

__device__ __forceinline__ Split split_a_pair(float first, float second) {
  const unsigned p = half_pair((1.0f - w) * first, (1.0f - w) * second);
  const float2 rounded = float_pair(p);
  return {p, half_pair(first - rounded.x, second - rounded.y)};
}

__device__ __forceinline__ Split split_b_pair(float first, float second) {
  const unsigned q = half_pair(first, second);
  const float2 rounded = float_pair(q);
  return {q, half_pair(rounded.x + (first - rounded.x) * (1.0f / w),
                       rounded.y + (second - rounded.y) * (1.0f / w))};
}

/// Undoes the scaling and stores a warp's 64 x 64; the four lanes of a row store whole sectors. Two factors,
/// since their product may lie outside FP32's range.
__device__ __forceinline__ void store_tile(float* c, const float (&sum)[4][8][4], const int* exponents,
                                           int lane) {
  const int row = lane / 4;
  float* target = c + static_cast<long long>(row) * problem::n + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int exponent = -exponents[i * 16 + half * 8 + row];
      const float factor_1 = power_of_two(exponent / 2);
      const float factor_2 = power_of_two(exponent - exponent / 2);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        *reinterpret_cast<float2*>(target + (i * 16 + half * 8) * problem::n + j * 8) =
            make_float2(sum[i][j][half * 2] * factor_1 * factor_2,
                        sum[i][j][half * 2 + 1] * factor_1 * factor_2);
      }
    }
  }
}

}  // namespace

/// grid: k; block: 256. Row k of B, scaled by 2 to b_exponents[k], becomes rows of Y and of Q in b_images: for each
/// 256 columns the steps of both products, Y's before Q's, as a slot of shared memory holds them.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_b(const float* __restrict__ b, char* __restrict__ b_images, signed char* __restrict__ b_exponents) {
  __shared__ float partial[split_threads / 32];
  constexpr int parts = problem::n / split_columns;
  const int row = blockIdx.x;
  const float* from = b + static_cast<long long>(row) * problem::n + threadIdx.x * 4;
  float4 values[parts];
#pragma unroll
  for (int i = 0; i < parts; ++i) values[i] = *reinterpret_cast<const float4*>(from + i * split_columns);
  float maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < parts; ++i) maximum = fmaxf(maximum, largest_magnitude(values[i]));
  const int exponent = scale_exponent(block_maximum(maximum, partial));
  if (threadIdx.x == 0) b_exponents[row] = static_cast<signed char>(exponent);

  const float scale = power_of_two(exponent);
  const int chunk = threadIdx.x / 2 % 32, half_chunk = threadIdx.x % 2;
  char* y = b_images + (static_cast<long long>(threadIdx.x / 64) * k_steps + row / tile_k) * b_bytes +
            row % tile_k * b_row_bytes + (chunk ^ (row % 8)) * 16 + half_chunk * 8;
  char* q = y + static_cast<long long>(k_steps / 2) * b_bytes;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const float4 v = values[i];
    const Split first = split_b_pair(v.x * scale, v.y * scale);
    const Split second = split_b_pair(v.z * scale, v.w * scale);
    const long long offset = static_cast<long long>(i * (split_columns / tile_n)) * k_steps * b_bytes;
    *reinterpret_cast<uint2*>(q + offset) = make_uint2(first.large, second.large);
    *reinterpret_cast<uint2*>(y + offset) = make_uint2(first.small, second.small);
  }
}

/// grid: m; block: 256. Row i of A becomes rows of X and of P in a_images: for each 128 rows the steps of both
/// products, X's before P's. exponents[i] is the power of two that row i of C is scaled by.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_a(const float* __restrict__ a, const signed char* __restrict__ b_exponents,
            char* __restrict__ a_images, int* __restrict__ exponents) {
  __shared__ int int_partial[split_threads / 32];
  __shared__ float partial[split_threads / 32];
  constexpr int parts = problem::k / split_columns;
  const float* a_row = a + static_cast<long long>(blockIdx.x) * problem::k + threadIdx.x * 4;
  float4 values[parts];
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    values[i] = *reinterpret_cast<const float4*>(a_row + i * split_columns);
  }
  char4 scales[parts];
  int opposite = -126;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    scales[i] = *reinterpret_cast<const char4*>(b_exponents + threadIdx.x * 4 + i * split_columns);
    opposite = max(max(opposite, max(-scales[i].x, -scales[i].y)), max(-scales[i].z, -scales[i].w));
  }
  // Relative to the smallest scale, so that no value grows.
  const int smallest = -block_maximum(opposite, int_partial);
  float maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    values[i].x *= power_of_two(max(smallest - scales[i].x, -126));
    values[i].y *= power_of_two(max(smallest - scales[i].y, -126));
    values[i].z *= power_of_two(max(smallest - scales[i].z, -126));
    values[i].w *= power_of_two(max(smallest - scales[i].w, -126));
    maximum = fmaxf(maximum, largest_magnitude(values[i]));
  }
  const int exponent = scale_exponent(block_maximum(maximum, partial));
  if (threadIdx.x == 0) exponents[blockIdx.x] = exponent + smallest;

  const float scale = power_of_two(exponent);
  const int row = blockIdx.x;
  const int chunk = threadIdx.x / 2 % 4, half_chunk = threadIdx.x % 2;
  char* x = a_images + (static_cast<long long>(row / tile_m) * k_steps + threadIdx.x / 8) * a_bytes +
            row % tile_m * a_row_bytes + (chunk ^ (row / 2 % 4)) * 16 + half_chunk * 8;
  char* p = x + static_cast<long long>(k_steps / 2) * a_bytes;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const float4 v = values[i];
    const Split first = split_a_pair(v.x * scale, v.y * scale);
    const Split second = split_a_pair(v.z * scale, v.w * scale);
    const long long offset = static_cast<long long>(i * (split_columns / tile_k)) * a_bytes;
    *reinterpret_cast<uint2*>(p + offset) = make_uint2(first.large, second.large);
    *reinterpret_cast<uint2*>(x + offset) = make_uint2(first.small, second.small);
  }
}

/// grid: one block a tile of C; block: 256; dynamic shared memory: 4 slots, 98304 bytes.
extern "C" __global__ void __launch_bounds__(threads, 1)
    multiply_matrices(const char* __restrict__ a_images, const char* __restrict__ b_images,
                      const int* __restrict__ exponents, float* __restrict__ c) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp % 2, warp_n = warp / 2;

  const int group = blockIdx.x / (group_m * tiles_n), in_group = blockIdx.x % (group_m * tiles_n);
  const long long first_row = static_cast<long long>(group * group_m + in_group % group_m) * tile_m;
  const int first_column = in_group / group_m * tile_n;

  // Where this lane's row addresses for ldmatrix start, in the first k-step of a slot. Permuting a
  // chunk is an exclusive or, so the chunks that follow are reached by one more.
  const unsigned a_lane_offset =
      (warp_m * 64 + lane % 16) * a_row_bytes + ((lane / 16) ^ (lane / 2 % 4)) * 16;
  const unsigned b_lane_offset =
      a_bytes + lane % 16 * b_row_bytes + warp_n * 128 + ((lane / 16) ^ (lane % 8)) * 16;

  const unsigned shared = ptx::shared_address(shared_memory);
  const bool copies = threadIdx.x >= threads - copying_warps * 32;
  Copier copier(a_images + first_row / tile_m * k_steps * a_bytes,
                b_images + static_cast<long long>(first_column / tile_n) * k_steps * b_bytes, shared,
                threadIdx.x % (copying_warps * 32));
  if (copies) {
#pragma unroll
    for (int i = 0; i < slots; ++i) {
      copier.copy_next(i);
      ptx::commit_copies();
    }
  }

  float sum[4][8][4] = {};
  Fragments fragments[2];
  ptx::wait_for_copies<slots - 1>();
  __syncthreads();
  load_fragments(fragments[0], shared, 0, a_lane_offset, b_lane_offset);
#pragma unroll 1
  for (int step = 0; step < k_steps; step += slots) {
#pragma unroll
    for (int i = 0; i < slots; ++i) {
      load_fragments(fragments[1], shared + i * slot_bytes, 1, a_lane_offset, b_lane_offset);
      multiply(sum, fragments[0]);
      ptx::wait_for_copies<slots - 2>();
      __syncthreads();  // all have read this slot, and the next one has arrived
      if (copies) {
        if (step + i + slots < k_steps) copier.copy_next(i);
        ptx::commit_copies();  // an empty group at the end, so that the count above stays right
      }
      // After the last step this reads an old slot, and the result is not used.
      load_fragments(fragments[0], shared + (i + 1) % slots * slot_bytes, 0, a_lane_offset, b_lane_offset);
      multiply(sum, fragments[1]);
    }
  }

  const long long warp_row = first_row + warp_m * 64;
  store_tile(c + warp_row * problem::n + first_column + warp_n * 64, sum, exponents + warp_row, lane);
}
