// C = A·B in FP32, from two FP16 products with FP32 accumulation, for every GPU since sm_80.
//
// With a small power of two w, P = f16((1 - w)A), X = f16(A - P), Q = f16(B) and
// Y = f16(Q + (B - Q)/w): X is nearly wA, so X·Y adds to P·Q both the part wA·Q of the product that
// P leaves out and the part A·(B - Q) that the rounding of B loses. Both products run as one matrix
// product of depth 2k, [X P]·[Y; Q], the small one first, since the matrix unit truncates in
// proportion to the sum so far. Each row of A, and B as a whole, is scaled by a power of two, so
// that inputs of any size stay inside FP16's range.
//
// 1. split_a_and_scan_b: a block a row; P and X, and the largest magnitude in the row of B.
// 2. split_b: Q and Y.
// 3. multiply_matrices: a block of 8 warps computes 128 x 256 of C, a warp 64 x 64. Four slots of
//    shared memory hold k-steps of 32, filled by cp.async three steps ahead; the fragments of one
//    k-step of 16 are loaded while the matrix unit works on those of the step before.
#include <cuda_fp16.h>

#include "problem.h"

namespace {

constexpr int tile_m = 128;
constexpr int tile_n = 256;
constexpr int tile_k = 32;
constexpr int slots = 4;
constexpr int threads = 256;
constexpr int group_m = 16;  // tile rows that run side by side: about square, for reuse in L2

constexpr int depth = 2 * problem::k;  // of the split matrices
constexpr int k_steps = depth / tile_k;
constexpr int tiles_n = problem::n / tile_n;
static_assert(problem::m % (tile_m * group_m) == 0 && problem::n % tile_n == 0 &&
              depth % tile_k == 0 && k_steps >= slots);

constexpr float w = 1.0f / 64;
constexpr int split_threads = 256;
constexpr int split_columns = split_threads * 4;  // that a block splits at once
constexpr int split_b_rows = 4;                   // that a block splits
static_assert(problem::m == problem::k, "block i of the first launch takes row i of A and of B");
static_assert(problem::k % split_columns == 0 && problem::n % split_columns == 0 &&
              problem::k % split_b_rows == 0);

constexpr int a_row_bytes = tile_k * 2;
constexpr int b_row_bytes = tile_n * 2;
constexpr int a_bytes = tile_m * a_row_bytes;
constexpr int slot_bytes = a_bytes + tile_k * b_row_bytes;

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

/// Copies a k-step of the block's rows of A and columns of B into a slot. Rows of A are 4 chunks of
/// 16 bytes, rows of B 32; chunks are permuted within a row so that the 8 rows that ldmatrix reads
/// at a time lie in different banks.
struct TileLoader {
  const __half* a;
  const __half* b;
  unsigned a_offset;
  unsigned b_offset;

  __device__ TileLoader(const __half* a_tile, const __half* b_tile) {
    const int thread = threadIdx.x;
    const int a_row = thread / 4, a_chunk = thread % 4;
    const int b_row = thread / 32, b_chunk = thread % 32;
    a = a_tile + static_cast<long long>(a_row) * depth + a_chunk * 8;
    b = b_tile + static_cast<long long>(b_row) * problem::n + b_chunk * 8;
    a_offset = a_row * a_row_bytes + (a_chunk ^ (a_row / 2 % 4)) * 16;
    b_offset = a_bytes + b_row * b_row_bytes + (b_chunk ^ b_row) * 16;
  }

  __device__ __forceinline__ void load_next(unsigned slot) {
#pragma unroll
    for (int i = 0; i < tile_m / 64; ++i) {
      ptx::copy_16_bytes_async(slot + a_offset + i * 64 * a_row_bytes,
                               a + static_cast<long long>(i) * 64 * depth);
    }
#pragma unroll
    for (int i = 0; i < tile_k / 8; ++i) {
      ptx::copy_16_bytes_async(slot + b_offset + i * 8 * b_row_bytes,
                               b + static_cast<long long>(i) * 8 * problem::n);
    }
    a += tile_k;
    b += static_cast<long long>(tile_k) * problem::n;
  }
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

/// The power of two, as an exponent, that brings values up to `maximum` below 2^15. Y exceeds B by
/// little, so it stays below FP16's 65504, and all that matters is far above FP16's subnormals.
__device__ __forceinline__ int scale_exponent(float maximum) {
  const int exponent = static_cast<int>(__float_as_uint(maximum) >> 23) - 127;
  return maximum == 0.0f ? 0 : min(14 - exponent, 126);
}

/// For exponents from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

__device__ __forceinline__ float largest_magnitude(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/// The maximum over the block, for every thread. `partial` (shared) is one value a warp.
__device__ __forceinline__ float block_maximum(float value, float* partial) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float maximum = partial[0];
#pragma unroll
  for (int warp = 1; warp < split_threads / 32; ++warp) maximum = fmaxf(maximum, partial[warp]);
  return maximum;
}

struct Split {
  __half large;  // P or Q
  __half small;  // X or Y: the factor of the other small one
};

__device__ __forceinline__ Split split_a_value(float value) {
  const __half p = __float2half_rn((1.0f - w) * value);
  return {p, __float2half_rn(value - __half2float(p))};
}

__device__ __forceinline__ Split split_b_value(float value) {
  const __half q = __float2half_rn(value);
  const float q_value = __half2float(q);
  return {q, __float2half_rn(q_value + (value - q_value) * (1.0f / w))};
}

__device__ __forceinline__ void store_four(__half* target, __half a, __half b, __half c, __half d) {
  const unsigned low = __half_as_ushort(a) | static_cast<unsigned>(__half_as_ushort(b)) << 16;
  const unsigned high = __half_as_ushort(c) | static_cast<unsigned>(__half_as_ushort(d)) << 16;
  *reinterpret_cast<uint2*>(target) = make_uint2(low, high);
}

__device__ __forceinline__ void store_splits(__half* large, __half* small, const Split (&s)[4]) {
  store_four(large, s[0].large, s[1].large, s[2].large, s[3].large);
  store_four(small, s[0].small, s[1].small, s[2].small, s[3].small);
}

/// Undoes the scaling and stores a warp's 64 x 64 as whole lines, 32 rows at a time, by way of 8 KB
/// of shared memory of the warp's own. Two factors, since their product may lie outside FP32's
/// range.
__device__ __forceinline__ void store_tile(float* c, const float (&sum)[4][8][4],
                                           const int* a_exponents, int b_exponent,
                                           unsigned char* staging, int lane) {
  const int row = lane / 4, column_pair = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (half == 1) __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // i counts 8 rows. Rows are 16 chunks of 16 bytes, permuted two by two, so that the 8-byte
      // stores of half a warp lie in different banks.
      const int exponent = -(a_exponents[half * 32 + i * 8 + row] + b_exponent);
      const float factor_1 = power_of_two(exponent / 2);
      const float factor_2 = power_of_two(exponent - exponent / 2);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float(&values)[4] = sum[half * 2 + i / 2][j];
        const int chunk = (j * 2 + column_pair / 2) ^ (row * 2);
        *reinterpret_cast<float2*>(staging + (i * 8 + row) * 256 + chunk * 16 +
                                   column_pair % 2 * 8) =
            make_float2(values[i % 2 * 2] * factor_1 * factor_2,
                        values[i % 2 * 2 + 1] * factor_1 * factor_2);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int line = i * 2 + lane / 16, chunk = lane % 16;
      const float4 values =
          *reinterpret_cast<const float4*>(staging + line * 256 + (chunk ^ (line % 8 * 2)) * 16);
      *reinterpret_cast<float4*>(c + static_cast<long long>(half * 32 + line) * problem::n +
                                 chunk * 4) = values;
    }
  }
}

}  // namespace

/// grid: k; block: 256. Row i of A becomes row i of [X P] (m x 2k) and a_exponents[i], the power of
/// two that it was scaled by; b_row_maximum[i] is the largest magnitude in row i of B.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_a_and_scan_b(const float* __restrict__ a, const float* __restrict__ b,
                       __half* __restrict__ a_split, int* __restrict__ a_exponents,
                       float* __restrict__ b_row_maximum) {
  __shared__ float partial[2][split_threads / 32];
  const int row = blockIdx.x;
  constexpr int a_parts = problem::k / split_columns;
  constexpr int b_parts = problem::n / split_columns;
  const float* a_row = a + static_cast<long long>(row) * problem::k + threadIdx.x * 4;
  const float* b_row = b + static_cast<long long>(row) * problem::n + threadIdx.x * 4;

  float4 values[a_parts];
#pragma unroll
  for (int i = 0; i < a_parts; ++i) {
    values[i] = *reinterpret_cast<const float4*>(a_row + i * split_columns);
  }
  float b_maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < b_parts; ++i) {
    b_maximum = fmaxf(
        b_maximum, largest_magnitude(*reinterpret_cast<const float4*>(b_row + i * split_columns)));
  }
  float a_maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < a_parts; ++i) a_maximum = fmaxf(a_maximum, largest_magnitude(values[i]));

  const int exponent = scale_exponent(block_maximum(a_maximum, partial[0]));
  b_maximum = block_maximum(b_maximum, partial[1]);
  if (threadIdx.x == 0) {
    a_exponents[row] = exponent;
    b_row_maximum[row] = b_maximum;
  }

  const float scale = power_of_two(exponent);
  __half* x = a_split + static_cast<long long>(row) * depth + threadIdx.x * 4;
#pragma unroll
  for (int i = 0; i < a_parts; ++i) {
    const float4 v = values[i];
    const Split split[4] = {split_a_value(v.x * scale), split_a_value(v.y * scale),
                            split_a_value(v.z * scale), split_a_value(v.w * scale)};
    store_splits(x + problem::k + i * split_columns, x + i * split_columns, split);
  }
}

/// grid: k / 4; block: 256. Rows 4i to 4i + 3 of B become those of Y and of Q in [Y; Q] (2k x n);
/// *b_exponent is the power of two that B was scaled by.
extern "C" __global__ void __launch_bounds__(split_threads)
    split_b(const float* __restrict__ b, const float* __restrict__ b_row_maximum,
            __half* __restrict__ b_split, int* __restrict__ b_exponent) {
  __shared__ float partial[split_threads / 32];
  float maximum = 0.0f;
#pragma unroll
  for (int i = 0; i < problem::k / split_columns; ++i) {
    maximum = fmaxf(maximum, largest_magnitude(*reinterpret_cast<const float4*>(
                                 b_row_maximum + i * split_columns + threadIdx.x * 4)));
  }
  const int exponent = scale_exponent(block_maximum(maximum, partial));
  if (blockIdx.x == 0 && threadIdx.x == 0) *b_exponent = exponent;

  const float scale = power_of_two(exponent);
  const long long start =
      static_cast<long long>(blockIdx.x) * split_b_rows * problem::n + threadIdx.x * 4;
  __half* y = b_split + start;
  __half* q = y + static_cast<long long>(problem::k) * problem::n;
#pragma unroll
  for (int i = 0; i < split_b_rows * problem::n / split_columns; ++i) {
    const float4 v = *reinterpret_cast<const float4*>(b + start + i * split_columns);
    const Split split[4] = {split_b_value(v.x * scale), split_b_value(v.y * scale),
                            split_b_value(v.z * scale), split_b_value(v.w * scale)};
    store_splits(q + i * split_columns, y + i * split_columns, split);
  }
}

/// grid: one block a tile of C; block: 256; dynamic shared memory: 4 slots, 98304 bytes.
extern "C" __global__ void __launch_bounds__(threads, 1)
    multiply_matrices(const __half* __restrict__ a_split, const __half* __restrict__ b_split,
                      const int* __restrict__ a_exponents, const int* __restrict__ b_exponent,
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
  TileLoader loader(a_split + first_row * depth, b_split + first_column);
#pragma unroll
  for (int i = 0; i < slots - 1; ++i) {
    loader.load_next(shared + i * slot_bytes);
    ptx::commit_copies();
  }

  float sum[4][8][4] = {};
  Fragments fragments[2];
  ptx::wait_for_copies<slots - 2>();
  __syncthreads();
  load_fragments(fragments[0], shared, 0, a_lane_offset, b_lane_offset);

  unsigned read_slot = shared, write_slot = shared + (slots - 1) * slot_bytes;
  const unsigned end = shared + slots * slot_bytes;
  for (int step = 0; step < k_steps; ++step) {
    load_fragments(fragments[1], read_slot, 1, a_lane_offset, b_lane_offset);
    // The slot written here was last read before the barrier of the step before.
    if (step + slots - 1 < k_steps) loader.load_next(write_slot);
    ptx::commit_copies();  // an empty group at the end, so that the count below stays right
    write_slot = read_slot;
    multiply(sum, fragments[0]);

    read_slot = read_slot + slot_bytes == end ? shared : read_slot + slot_bytes;
    ptx::wait_for_copies<slots - 2>();
    __syncthreads();
    // After the last step this reads an old slot, and the result is not used.
    load_fragments(fragments[0], read_slot, 0, a_lane_offset, b_lane_offset);
    multiply(sum, fragments[1]);
  }

  __syncthreads();  // the staging below overwrites slots
  const long long warp_row = first_row + warp_m * 64;
  store_tile(c + warp_row * problem::n + first_column + warp_n * 64, sum, a_exponents + warp_row,
             *b_exponent, shared_memory + warp * 32 * 256, lane);
}
