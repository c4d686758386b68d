#include <cuda_fp16.h>
#include <mma.h>

#include "problem.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int tile = 64;
constexpr int depth = 64;
constexpr int steps = problem::k / depth;
constexpr unsigned slot_bytes = 2 * tile * depth * sizeof(__half);
static_assert(problem::m % tile == 0 && problem::n % tile == 0 && problem::k % depth == 0);

/// What the driver encodes: 128 opaque bytes.
struct alignas(64) TensorMap {
  char bytes[128];
};

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void copy_box(const TensorMap& map, int x, int y, void* target, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(target)),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

__device__ void wait_for(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

}  // namespace

/// A block of 4 warps makes 64 x 64 of c, a warp 32 x 32.
extern "C" __global__ void __launch_bounds__(128)
    matmul(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
           __half* __restrict__ c) {
  using namespace problem;
  __shared__ __align__(128) __half a_tile[2][tile][depth];
  __shared__ __align__(128) __half b_tile[2][depth][tile];
  __shared__ __align__(8) unsigned long long filled[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;

  const auto fill = [&](int step) {
    const int slot = step % 2;
    const unsigned barrier = shared_address(&filled[slot]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(slot_bytes)
                 : "memory");
    copy_box(a_map, step * depth, first_row, &a_tile[slot][0][0], barrier);
    copy_box(b_map, first_column, step * depth, &b_tile[slot][0][0], barrier);
  };

  if (threadIdx.x == 0) {
    for (int slot = 0; slot < 2; ++slot) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&filled[slot]))
                   : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    fill(0);
  }
  __syncthreads();

  Sum sum[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  }
  for (int step = 0; step < steps; ++step) {
    const int slot = step % 2;
    // The other slot was last read before the barrier at the end of the step before.
    if (threadIdx.x == 0 && step + 1 < steps) fill(step + 1);
    wait_for(shared_address(&filled[slot]), step / 2 % 2);
#pragma unroll
    for (int l = 0; l < depth; l += 16) {
      FragmentA left[2];
      FragmentB right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], &a_tile[slot][warp_row + i * 16][l], depth);
        wmma::load_matrix_sync(right[i], &b_tile[slot][l][warp_column + i * 16], tile);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

  // All copies have arrived and been read: the slots serve as staging, 1 KB a warp.
  float* results = reinterpret_cast<float*>(&a_tile[0][0][0]) + warp * 256;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(results, sum[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      const long long row = first_row + warp_row + i * 16;
      for (int e = lane; e < 256; e += 32) {
        c[(row + e / 16) * n + first_column + warp_column + j * 16 + e % 16] =
            __float2half_rn(results[e]);
      }
      __syncwarp();
    }
  }
}
