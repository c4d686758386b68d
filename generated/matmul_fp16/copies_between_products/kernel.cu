// C = A·B in FP16 with FP32 accumulation, for every GPU since sm_80.
//
// A block of 8 warps computes 128 x 256 of C, a warp 64 x 64. Four slots of shared memory hold
// k-steps of 32, filled by cp.async three steps ahead; the fragments of one k-step of 16 are loaded
// while the matrix unit works on those of the step before.
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
constexpr int tile_k = 32;
constexpr int slots = 4;
constexpr int threads = 256;
constexpr int group_m = 16;  // tile rows that run side by side: about square, for reuse in L2

constexpr int k_steps = problem::k / tile_k;
constexpr int tiles_n = problem::n / tile_n;
static_assert(problem::m % (tile_m * group_m) == 0 && problem::n % tile_n == 0 &&
              problem::k % tile_k == 0 && k_steps >= slots);

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
    a = a_tile + static_cast<long long>(a_row) * problem::k + a_chunk * 8;
    b = b_tile + static_cast<long long>(b_row) * problem::n + b_chunk * 8;
    a_offset = a_row * a_row_bytes + (a_chunk ^ (a_row / 2 % 4)) * 16;
    b_offset = a_bytes + b_row * b_row_bytes + (b_chunk ^ b_row) * 16;
  }

  /// Pieces 0 and 1 are rows of A, 2 to 5 rows of B.
  template <int piece>
  __device__ __forceinline__ void copy(unsigned slot) const {
    if constexpr (piece < 2) {
      ptx::copy_16_bytes_async(slot + a_offset + piece * 64 * a_row_bytes,
                               a + static_cast<long long>(piece) * 64 * problem::k);
    } else {
      ptx::copy_16_bytes_async(slot + b_offset + (piece - 2) * 8 * b_row_bytes,
                               b + static_cast<long long>(piece - 2) * 8 * problem::n);
    }
  }

  __device__ __forceinline__ void advance() {
    a += tile_k;
    b += static_cast<long long>(tile_k) * problem::n;
  }

  __device__ __forceinline__ void load_next(unsigned slot) {
    copy<0>(slot);
    copy<1>(slot);
    copy<2>(slot);
    copy<3>(slot);
    copy<4>(slot);
    copy<5>(slot);
    advance();
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

/// 16 rows. Every second time it begins with the columns that the rows before ended with.
template <int i>
__device__ __forceinline__ void multiply_row(float (&sum)[4][8][4], const Fragments& fragments) {
#pragma unroll
  for (int l = 0; l < 8; ++l) {
    const int j = i % 2 == 0 ? l : 7 - l;
    ptx::multiply_accumulate(sum[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2],
                             fragments.b[j / 2][j % 2 * 2 + 1]);
  }
}

__device__ __forceinline__ void multiply(float (&sum)[4][8][4], const Fragments& fragments) {
  multiply_row<0>(sum, fragments);
  multiply_row<1>(sum, fragments);
  multiply_row<2>(sum, fragments);
  multiply_row<3>(sum, fragments);
}

/// With the copies of a step between the products.
__device__ __forceinline__ void multiply_and_copy(float (&sum)[4][8][4], const Fragments& fragments,
                                                  const TileLoader& loader, unsigned slot, bool more) {
  multiply_row<0>(sum, fragments);
  if (more) {
    loader.copy<0>(slot);
    loader.copy<1>(slot);
  }
  multiply_row<1>(sum, fragments);
  if (more) {
    loader.copy<2>(slot);
    loader.copy<3>(slot);
  }
  multiply_row<2>(sum, fragments);
  if (more) {
    loader.copy<4>(slot);
    loader.copy<5>(slot);
  }
  ptx::commit_copies();  // an empty group at the end, so that the count of groups stays right
  multiply_row<3>(sum, fragments);
}

/// Rounds a warp's 64 x 64 to FP16 and stores it as whole 128-byte lines, by way of 8 KB of shared
/// memory of the warp's own.
__device__ __forceinline__ void store_tile(__half* c, const float (&sum)[4][8][4],
                                           unsigned char* staging, int lane) {
  const int row = lane / 4, column_pair = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // Rows of 8 chunks, permuted as above; row and row + 8 have the same permutation.
      unsigned char* target = staging + (i * 16 + row) * 128 + (j ^ row) * 16 + column_pair * 4;
      *reinterpret_cast<__half2*>(target) = __floats2half2_rn(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<__half2*>(target + 8 * 128) = __floats2half2_rn(sum[i][j][2], sum[i][j][3]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int line = i * 4 + lane / 8, chunk = lane % 8;
    const uint4 values =
        *reinterpret_cast<const uint4*>(staging + line * 128 + (chunk ^ (line % 8)) * 16);
    *reinterpret_cast<uint4*>(c + static_cast<long long>(line) * problem::n + chunk * 8) = values;
  }
}

}  // namespace

/// grid: one block a tile of C; block: 256; dynamic shared memory: 4 slots, 98304 bytes.
extern "C" __global__ void __launch_bounds__(threads, 1)
    multiply_matrices(const __half* __restrict__ a, const __half* __restrict__ b,
                      __half* __restrict__ c) {
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
  TileLoader loader(a + first_row * problem::k, b + first_column);
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
    multiply_and_copy(sum, fragments[0], loader, write_slot, step + slots - 1 < k_steps);
    write_slot = read_slot;

    read_slot = read_slot + slot_bytes == end ? shared : read_slot + slot_bytes;
    ptx::wait_for_copies<slots - 2>();
    __syncthreads();
    // After the last step this reads an old slot, and the result is not used.
    load_fragments(fragments[0], read_slot, 0, a_lane_offset, b_lane_offset);
    loader.advance();  // long after the copies have read their pointers
    multiply(sum, fragments[1]);
  }

  __syncthreads();  // the staging below overwrites slots
  store_tile(c + (first_row + warp_m * 64) * problem::n + first_column + warp_n * 64, sum,
             shared_memory + warp * 64 * 128, lane);
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

// A block computes 32 x 32 elements with FP32 sums, from tiles in shared memory that end in zeros.
extern "C" __global__ void __launch_bounds__(256) product_of_any_size(const __half* a, const __half* b, __half* c) {
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
      left[row][column] = has_left ? __half2float(a[(block_row + row) * problem::k + from + column]) : 0.0f;
      right[row][column] =
          has_right ? __half2float(b[1ll * (from + row) * problem::n + block_column + column]) : 0.0f;
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
      c[row * problem::n + block_column + column] = __float2half(sum[i]);
    }
  }
}
