// C = A·B in FP32, from FP16 products and one of 8-bit integers, for every GPU since sm_80.
//
// With a small w, P = f16((1 - w)A), X = A - P, Q = f16(B) and Y = Q + (B - Q)/w: X is nearly wA, so X·Y
// adds to P·Q both the part wA·Q of the product that P leaves out and the part A·(B - Q) that the rounding
// of B loses. X·Y is so small that 8-bit integers nearly do for it, which the matrix unit multiplies twice
// as fast: an error of 1/254 of the largest X or Y is one of w/254 of the result. A smaller w makes that
// less and the product of both roundings, which is left out, more: at 1/512 they are about equal. One
// element in 16 million would be outside of the tolerance, so only a half of X·Y is of integers; the rest
// is of halves, with w = 1/64.
//
// 1. split_b: a block two rows of B, each scaled so that its largest value becomes 2^15.
// 2. split_a: a block a row of A. The scales of B's rows belong to A's columns and are undone here; then
//    the row gets a power of two of its own. So every input is read once, and any size fits FP16's range.
// 3. multiply_matrices. The factors are stored as images of what shared memory holds for a step, in the
//    order in which a block needs them, so that every copy is of whole lines, one behind the other. A step
//    is 64 of k of integers or 32 of halves, which lie alike: two integers take the place of a half, in
//    shared memory as in registers. Integers come first, exactly, and become FP32 where they are; then the
//    halves of X·Y and those of P·Q, since the matrix unit truncates in proportion to the sum so far. A
//    block of 8 warps computes 128 x 256 of C, a warp 64 x 64, from a ring of four slots; the loops are
//    unrolled over the slots. Of the two warps on each scheduler only one copies, so that they fall out of
//    step: one multiplies while the other one stands in the queue of copies.
//
// That is for the sizes of the problem itself, whose constants stand below. Other sizes have a kernel of their own,
// at the end.

#include <cuda_fp16.h>

#include "problem.h"

namespace at_own_sizes {

namespace problem {
inline constexpr int m = 4096;
inline constexpr int n = 4096;
inline constexpr int k = 4096;
inline constexpr int a_elements = 16777216;
inline constexpr int b_elements = 16777216;
inline constexpr int c_elements = 16777216;
}  // namespace problem

namespace {

constexpr int tile_m = 128;
constexpr int tile_n = 256;
constexpr int tile_k = 32;           // of halves
constexpr int tile_k_integers = 64;  // the same bytes
constexpr int slots = 4;
constexpr int threads = 256;
constexpr int copying_warps = 4;  // the last ones: one on each scheduler
constexpr int group_m = 16;       // tile rows that run side by side: about square, for reuse in L2

constexpr int k_integers = problem::k / 8 * 4;  // of X·Y; the rest of it is of halves
constexpr int integer_steps = k_integers / tile_k_integers;
constexpr int small_steps = integer_steps + (problem::k - k_integers) / tile_k;
constexpr int k_steps = small_steps + problem::k / tile_k;
constexpr int tiles_n = problem::n / tile_n;
static_assert(problem::m % (tile_m * group_m) == 0 && problem::n % tile_n == 0 &&
              k_integers % tile_k_integers == 0 && integer_steps % slots == 0 && k_steps % slots == 0);

constexpr float w_integers = 1.0f / 512;
constexpr float w_halves = 1.0f / 64;
constexpr float largest_b = 32768.0f;                          // once scaled
constexpr float y_unit = largest_b * (1.0f + 1.0f / 8) / 127;  // Y exceeds Q by 2^-12/w
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
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

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
__device__ __forceinline__ void multiply_accumulate(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d (16 x 8, 32-bit integers) += a (16 x 32) · b (32 x 8), of 8-bit integers.
__device__ __forceinline__ void multiply_accumulate(int (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace ptx

namespace {

/// What a thread holds of a warp's 64 x 16 of A and 16 x 64 of B; of integers, 32 of k.
struct Fragments {
  unsigned a[4][4];  // by 16 rows
  unsigned b[4][4];  // by 16 columns: registers 0 and 1 for the first 8, 2 and 3 for the last 8
};

/// Copies the block's images of A and B into slots, step after step: each of the warps that copy a quarter of
/// both.
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

/// `step`: which half of the slot.
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

template <class Sum>
__device__ __forceinline__ void multiply(Sum (&sum)[4][8][4], const Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      ptx::multiply_accumulate(sum[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2],
                               fragments.b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

/// Steps `first` to `last` - 1, of integers or of halves. `fragments[0]` is loaded on entry, and with what
/// follows on exit.
template <class Sum>
__device__ __forceinline__ void multiply_steps(Sum (&sum)[4][8][4], Fragments (&fragments)[2], Copier& copier,
                                               bool copies, unsigned shared, unsigned a_lane_offset,
                                               unsigned b_lane_offset, int first, int last) {
#pragma unroll 1
  for (int step = first; step < last; step += slots) {
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
}

__device__ __forceinline__ unsigned half_pair(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float2 float_pair(unsigned pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

/// For exponents from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

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

__device__ __forceinline__ float4 scaled(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

__device__ __forceinline__ uint2 halves(float4 v) {
  return make_uint2(half_pair(v.x, v.y), half_pair(v.z, v.w));
}

/// Four numbers as pairs of halves, and what these leave.
struct Rounded {
  uint2 halves;
  float4 values;
  float4 rest;
};

__device__ __forceinline__ Rounded rounded(float4 v, float share) {
  Rounded r;
  r.halves = halves(scaled(v, share));
  const float2 first = float_pair(r.halves.x), last = float_pair(r.halves.y);
  r.values = make_float4(first.x, first.y, last.x, last.y);
  r.rest = make_float4(v.x - first.x, v.y - first.y, v.z - last.x, v.w - last.y);
  return r;
}

/// v · scale as four 8-bit integers; none exceeds 127. 1.5 · 2^23 more has an integer in its lowest byte.
__device__ __forceinline__ unsigned integers(float4 v, float scale) {
  constexpr float magic = 12582912.0f;
  const unsigned first =
      __byte_perm(__float_as_uint(fmaf(v.x, scale, magic)), __float_as_uint(fmaf(v.y, scale, magic)), 0x0040);
  const unsigned last =
      __byte_perm(__float_as_uint(fmaf(v.z, scale, magic)), __float_as_uint(fmaf(v.w, scale, magic)), 0x0040);
  return __byte_perm(first, last, 0x5410);
}

/// Integer sums become FP32 where they are: row i of a warp has the unit units[i].
__device__ __forceinline__ void to_float(float (&sum)[4][8][4], const int (&integer_sum)[4][8][4],
                                         const float* units, int lane) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float unit = units[i * 16 + half * 8 + lane / 4];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum[i][j][half * 2] = static_cast<float>(integer_sum[i][j][half * 2]) * unit;
        sum[i][j][half * 2 + 1] = static_cast<float>(integer_sum[i][j][half * 2 + 1]) * unit;
      }
    }
  }
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
        *reinterpret_cast<float2*>(target + (i * 16 + half * 8) * problem::n + j * 8) = make_float2(
            sum[i][j][half * 2] * factor_1 * factor_2, sum[i][j][half * 2 + 1] * factor_1 * factor_2);
      }
    }
  }
}

}  // namespace

/// grid: k / 2; block: 256. Rows 2i and 2i + 1 of B, times 2 to their b_exponents and divided by their
/// b_shares, become a row of pairs of integers or two rows of halves of Y and two rows of Q in b_images: for
/// each 256 columns the steps of Y and then those of Q, as a slot of shared memory holds them.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_b(const float* __restrict__ b, char* __restrict__ b_images, signed char* __restrict__ b_exponents,
            float* __restrict__ b_shares) {
  __shared__ float partial[2][split_threads / 32];
  constexpr int parts = problem::n / split_columns;
  const int row = blockIdx.x * 2;
  const float* from = b + static_cast<long long>(row) * problem::n + threadIdx.x * 4;
  float4 values[2][parts];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int i = 0; i < parts; ++i) {
      values[r][i] = *reinterpret_cast<const float4*>(from + r * problem::n + i * split_columns);
    }
  }
  float scale[2], over_share[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = 0.0f;
#pragma unroll
    for (int i = 0; i < parts; ++i) maximum = fmaxf(maximum, largest_magnitude(values[r][i]));
    maximum = block_maximum(maximum, partial[r]);
    const int exponent = scale_exponent(maximum);
    scale[r] = power_of_two(exponent);
    const float share = maximum == 0.0f ? 1.0f : maximum * scale[r] * (1.0f / largest_b);
    over_share[r] = 1.0f / share;
    if (threadIdx.x == 0) {
      b_exponents[row + r] = static_cast<signed char>(exponent);
      b_shares[row + r] = share;
    }
  }

  const bool of_integers = row < k_integers;
  const float over_w = of_integers ? 1.0f / w_integers : 1.0f / w_halves;
  const int chunk = threadIdx.x / 2 % 32, half_chunk = threadIdx.x % 2;
  char* images = b_images + static_cast<long long>(threadIdx.x / 64) * k_steps * b_bytes + half_chunk * 8;
  const int pair = row % tile_k_integers / 2, in_step = row % tile_k;
  char* integer_y = images + static_cast<long long>(row / tile_k_integers) * b_bytes + pair * b_row_bytes +
                    (chunk ^ (pair % 8)) * 16;
  char* y = images + static_cast<long long>(integer_steps + (row - k_integers) / tile_k) * b_bytes;
  char* q = images + static_cast<long long>(small_steps + row / tile_k) * b_bytes;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const long long offset = static_cast<long long>(i * (split_columns / tile_n)) * k_steps * b_bytes;
    unsigned bytes[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int in_slot = (in_step + r) * b_row_bytes + (chunk ^ (in_step % 8 + r)) * 16;
      const Rounded v = rounded(scaled(scaled(values[r][i], scale[r]), over_share[r]), 1.0f);
      *reinterpret_cast<uint2*>(q + offset + in_slot) = v.halves;
      const float4 corrected =
          make_float4(fmaf(v.rest.x, over_w, v.values.x), fmaf(v.rest.y, over_w, v.values.y),
                      fmaf(v.rest.z, over_w, v.values.z), fmaf(v.rest.w, over_w, v.values.w));
      if (of_integers) {
        bytes[r] = integers(corrected, 1.0f / y_unit);
      } else {
        *reinterpret_cast<uint2*>(y + offset + in_slot) = halves(corrected);
      }
    }
    if (of_integers) {
      *reinterpret_cast<uint2*>(integer_y + offset) =
          make_uint2(__byte_perm(bytes[0], bytes[1], 0x5140), __byte_perm(bytes[0], bytes[1], 0x7362));
    }
  }
}

/// grid: m; block: 256. Row i of A becomes rows of X and of P in a_images: for each 128 rows the steps of X
/// and then those of P. exponents[i] is the power of two that row i of C is scaled by, units[i] what an
/// integer sum of it counts.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_a(const float* __restrict__ a, const signed char* __restrict__ b_exponents,
            const float* __restrict__ b_shares, char* __restrict__ a_images, int* __restrict__ exponents,
            float* __restrict__ units) {
  __shared__ int int_partial[split_threads / 32];
  __shared__ float partial[2][split_threads / 32];
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
    const float4 share = *reinterpret_cast<const float4*>(b_shares + threadIdx.x * 4 + i * split_columns);
    values[i].x *= power_of_two(max(smallest - scales[i].x, -126)) * share.x;
    values[i].y *= power_of_two(max(smallest - scales[i].y, -126)) * share.y;
    values[i].z *= power_of_two(max(smallest - scales[i].z, -126)) * share.z;
    values[i].w *= power_of_two(max(smallest - scales[i].w, -126)) * share.w;
    maximum = fmaxf(maximum, largest_magnitude(values[i]));
  }
  const int exponent = scale_exponent(block_maximum(maximum, partial[0]));
  const float scale = power_of_two(exponent);

  const int row = blockIdx.x;
  char* images =
      a_images + static_cast<long long>(row / tile_m) * k_steps * a_bytes + row % tile_m * a_row_bytes;
  // Where four neighbours lie among integers and among halves.
  const int of_integers = ((threadIdx.x / 4 % 4) ^ (row / 2 % 4)) * 16 + threadIdx.x % 4 * 4;
  const int of_halves = ((threadIdx.x / 2 % 4) ^ (row / 2 % 4)) * 16 + threadIdx.x % 2 * 8;
  float largest_x = 0.0f;
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const int k = i * split_columns + threadIdx.x * 4;
    const Rounded v = rounded(scaled(values[i], scale), 1.0f - (k < k_integers ? w_integers : w_halves));
    *reinterpret_cast<uint2*>(images + static_cast<long long>(small_steps + k / tile_k) * a_bytes +
                              of_halves) = v.halves;
    if (k >= k_integers) {
      const int step = integer_steps + (k - k_integers) / tile_k;
      *reinterpret_cast<uint2*>(images + static_cast<long long>(step) * a_bytes + of_halves) = halves(v.rest);
    } else {
      values[i] = v.rest;
      largest_x = fmaxf(largest_x, largest_magnitude(v.rest));
    }
  }
  largest_x = block_maximum(largest_x, partial[1]);
  const float x_scale = largest_x == 0.0f ? 0.0f : 127.0f / largest_x;
  if (threadIdx.x == 0) {
    exponents[row] = exponent + smallest;
    units[row] = largest_x * (1.0f / 127) * y_unit;
  }
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const int k = i * split_columns + threadIdx.x * 4;
    if (k < k_integers) {
      *reinterpret_cast<unsigned*>(images + static_cast<long long>(k / tile_k_integers) * a_bytes +
                                   of_integers) = integers(values[i], x_scale);
    }
  }
}

/// grid: one block a tile of C; block: 256; dynamic shared memory: 4 slots, 98304 bytes.
extern "C" __global__ void __launch_bounds__(threads, 1)
    multiply_matrices(const char* __restrict__ a_images, const char* __restrict__ b_images,
                      const int* __restrict__ exponents, const float* __restrict__ units,
                      float* __restrict__ c) {
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

  Fragments fragments[2];
  ptx::wait_for_copies<slots - 1>();
  __syncthreads();
  load_fragments(fragments[0], shared, 0, a_lane_offset, b_lane_offset);
  const long long warp_row = first_row + warp_m * 64;
  float sum[4][8][4];
  {
    int integer_sum[4][8][4] = {};
    multiply_steps(integer_sum, fragments, copier, copies, shared, a_lane_offset, b_lane_offset, 0,
                   integer_steps);
    to_float(sum, integer_sum, units + warp_row, lane);
  }
  multiply_steps(sum, fragments, copier, copies, shared, a_lane_offset, b_lane_offset, integer_steps,
                 k_steps);
  store_tile(c + warp_row * problem::n + first_column + warp_n * 64, sum, exponents + warp_row, lane);
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

// A block computes 32 x 32 elements with FP32 sums, from tiles in shared memory that end in zeros.
extern "C" __global__ void __launch_bounds__(256) product_of_any_size(const float* a, const float* b, float* c) {
  __shared__ float left[32][33], right[32][33];
  const int column = threadIdx.x % 32;
  const int first = threadIdx.x / 32;  // of four rows, eight apart
  const long long block_row = 32ll * blockIdx.y, block_column = 32ll * blockIdx.x;
  float sum[4] = {};
  for (int from = 0; from < problem::k; from += 32) {
    for (int i = 0; i < 4; ++i) {
      const int row = first + 8 * i;
      const bool has_left = block_row + row < problem::m && from + column < problem::k;
      const bool has_right = from + row < problem::k && block_column + column < problem::n;
      left[row][column] = has_left ? (a[(block_row + row) * problem::k + from + column]) : 0.0f;
      right[row][column] =
          has_right ? (b[1ll * (from + row) * problem::n + block_column + column]) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < 32; ++l) {
      for (int i = 0; i < 4; ++i) sum[i] += left[first + 8 * i][l] * right[l][column];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    const long long row = block_row + first + 8 * i;
    if (row < problem::m && block_column + column < problem::n) {
      c[row * problem::n + block_column + column] = (sum[i]);
    }
  }
}
