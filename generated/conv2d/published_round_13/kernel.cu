// Convolution with bias as an implicit matrix product on the tensor cores:
// filters x pixels of all images, over the taps of all channels.
//
// A block of 8 warps computes all 96 filters of 128 pixels, a warp 48 x 32 of them, so that every
// value gathered from the input serves every filter and every value read from shared memory
// several products. Operands are rounded to FP16, products summed in FP32. The values of the next
// k-tile are on their way to registers while the tensor cores work on this one.
#include <cuda_fp16.h>
#include <mma.h>

#include "problem.h"

namespace {

using namespace nvcuda;

constexpr int taps = problem::kernel * problem::kernel;
constexpr int depth = problem::in_channels * taps;
constexpr int pixels = problem::out_height * problem::out_width;
constexpr int columns = problem::batch * pixels;

constexpr int tile_m = problem::filters;
constexpr int tile_n = 128;
constexpr int tile_k = 32;
constexpr int k_tiles = (depth + tile_k - 1) / tile_k;
constexpr int warps_m = 2, warps_n = 4, warps = warps_m * warps_n;
constexpr int warp_m = tile_m / warps_m, warp_n = tile_n / warps_n;
constexpr int fragments_m = warp_m / 16, fragments_n = warp_n / 16;
constexpr int threads = warps * 32;

// Rows of a tile that the block loads at a time.
constexpr int loader_rows = threads / (tile_k / 2);
// A row is 20 banks longer than the one before: the 8 rows that are read at a time lie in different
// banks.
constexpr int pitch = tile_k + 8;
constexpr int staging_pitch = warp_n + 4;

static_assert(tile_m % (warps_m * 16) == 0 && tile_n % (warps_n * 16) == 0 && warp_n == 32);
static_assert(tile_m % loader_rows == 0 && tile_n % loader_rows == 0);

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

struct __align__(128) Tiles {
  __half a[tile_m * pitch];  // filters x k
  __half b[tile_n * pitch];  // pixels x k
};

/// What a block needs first and last, in the same memory.
union Shared {
  Tiles tiles[2];
  float staging[warps][16 * staging_pitch];  // of a warp's own
};

/// A k index taken apart: the row and column of a patch, and the offset in the input from the
/// patch's first element.
struct Tap {
  int y, x, offset;
};

/// Beyond the depth, a row below every image.
__device__ __forceinline__ Tap tap_of(int k) {
  using namespace problem;
  if (k >= depth) return {height + padding, 0, 0};
  const int channel = k / taps, y = k % taps / kernel, x = k % taps % kernel;
  return {y, x, (channel * height + y) * width + x};
}

/// A column of the matrix product taken apart: an image and the row and column of its input where
/// the patch of the output's pixel begins, which may lie in the padding. `out` is the pixel's place
/// in the output, for filter 0.
struct __align__(16) Pixel {
  int image, in_y, in_x, out;
};

/// Beyond the columns, a patch that lies below every image, and no place.
__device__ __forceinline__ Pixel pixel_of(int column) {
  using namespace problem;
  if (column >= columns) return {0, height, 0, -1};
  const int image = column / pixels, pixel = column % pixels;
  return {image, pixel / out_width * stride - padding, pixel % out_width * stride - padding,
          image * filters * pixels + pixel};
}

/// An element of the weight matrix, filters x depth; 0 beyond the depth.
__device__ __forceinline__ float weight_at(const float* __restrict__ weight, int filter, int k) {
  return k < depth ? __ldg(&weight[filter * depth + k]) : 0.0f;
}

/// An element of the im2col matrix, depth x columns, which is never stored; 0 in the padding and
/// beyond the matrix.
__device__ __forceinline__ float patch_at(const float* __restrict__ input, const Tap& tap,
                                          const Pixel& pixel) {
  using namespace problem;
  const int y = pixel.in_y + tap.y, x = pixel.in_x + tap.x;
  const bool inside = y >= 0 && y < height && x >= 0 && x < width;
  const int corner = (pixel.image * in_channels * height + pixel.in_y) * width + pixel.in_x;
  return inside ? __ldg(&input[corner + tap.offset]) : 0.0f;
}

/// The first of the two neighbouring taps that a thread loads and stores together.
__device__ __forceinline__ int loader_k() { return threadIdx.x % (tile_k / 2) * 2; }

/// A warp stores to two rows at a time. They are four apart, 80 banks: with 16 banks each they do
/// not collide.
__device__ __forceinline__ int loader_row() {
  const int warp = threadIdx.x / 32, half_warp = threadIdx.x % 32 / 16;
  return warp / 4 * 8 + half_warp * 4 + warp % 4;
}

/// What a thread loads of a k-tile of both operands. Neighbouring lanes load neighbouring taps.
struct Values {
  float2 a[tile_m / loader_rows];
  float2 b[tile_n / loader_rows];
};

__device__ __forceinline__ void load_values(Values& values, const Pixel* pixel_table,
                                            const float* __restrict__ input,
                                            const float* __restrict__ weight, int k_tile) {
  const int k = k_tile * tile_k + loader_k();
  const Tap tap0 = tap_of(k), tap1 = tap_of(k + 1);
#pragma unroll
  for (int i = 0; i < tile_m / loader_rows; ++i) {
    const int row = i * loader_rows + loader_row();
    values.a[i] = {weight_at(weight, row, k), weight_at(weight, row, k + 1)};
  }
#pragma unroll
  for (int i = 0; i < tile_n / loader_rows; ++i) {
    const Pixel pixel = pixel_table[i * loader_rows + loader_row()];
    values.b[i] = {patch_at(input, tap0, pixel), patch_at(input, tap1, pixel)};
  }
}

__device__ __forceinline__ void store_values(Tiles& tiles, const Values& values) {
  const auto store = [](__half* tile, int i, float2 pair) {
    __half* target = tile + (i * loader_rows + loader_row()) * pitch + loader_k();
    *reinterpret_cast<__half2*>(target) = __float22half2_rn(pair);
  };
#pragma unroll
  for (int i = 0; i < tile_m / loader_rows; ++i) {
    store(tiles.a, i, values.a[i]);
  }
#pragma unroll
  for (int i = 0; i < tile_n / loader_rows; ++i) {
    store(tiles.b, i, values.b[i]);
  }
}

/// Adds a k-tile's product to a warp's sums. A step is 16 columns and 16 of k; its fragments of the
/// im2col matrix are read under the products of the step before.
__device__ __forceinline__ void multiply(Sum (&sum)[fragments_m][fragments_n], const Tiles& tiles,
                                         int warp_row, int warp_column) {
  const auto load_b = [&](FragmentB& b, int step) {
    const int k = step / fragments_n * 16;
    const int offset = (warp_column + step % fragments_n * 16) * pitch + k;
    wmma::load_matrix_sync(b, tiles.b + offset, pitch);
  };

  constexpr int steps = tile_k / 16 * fragments_n;
  FragmentA a[fragments_m];
  FragmentB b[2];
  load_b(b[0], 0);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int j = step % fragments_n, k = step / fragments_n * 16;
    if (j == 0) {
#pragma unroll
      for (int i = 0; i < fragments_m; ++i) {
        wmma::load_matrix_sync(a[i], tiles.a + (warp_row + i * 16) * pitch + k, pitch);
      }
    }
    if (step + 1 < steps) load_b(b[(step + 1) % 2], step + 1);
#pragma unroll
    for (int i = 0; i < fragments_m; ++i) {
      wmma::mma_sync(sum[i][j], a[i], b[step % 2], sum[i][j]);
    }
  }
}

/// Writes a warp's results, 16 filters at a time, as rows of 32 neighbouring pixels.
__device__ __forceinline__ void store_warp(float* __restrict__ output,
                                           const float* __restrict__ bias, float* staging,
                                           const Sum (&sum)[fragments_m][fragments_n], int warp_row,
                                           const Pixel* warp_pixels) {
  const int lane = threadIdx.x % 32, out = warp_pixels[lane].out;
#pragma unroll
  for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
    for (int j = 0; j < fragments_n; ++j) {
      wmma::store_matrix_sync(staging + j * 16, sum[i][j], staging_pitch, wmma::mem_row_major);
    }
    __syncwarp();
    if (out >= 0) {
#pragma unroll
      for (int row = 0; row < 16; ++row) {
        const int filter = warp_row + i * 16 + row;
        output[out + filter * pixels] = staging[row * staging_pitch + lane] + __ldg(&bias[filter]);
      }
    }
    __syncwarp();
  }
}

}  // namespace

/// grid: ceil(columns / 128); block: 256.
extern "C" __global__ void __launch_bounds__(threads, 2)
    convolve(const float* __restrict__ input, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ output) {
  __shared__ Shared shared;
  __shared__ Pixel pixel_table[tile_n];

  const int first_column = blockIdx.x * tile_n;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % warps_m * warp_m, warp_column = warp / warps_m * warp_n;

  Sum sum[fragments_m][fragments_n];
#pragma unroll
  for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
    for (int j = 0; j < fragments_n; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  }

  if (threadIdx.x < tile_n) pixel_table[threadIdx.x] = pixel_of(first_column + threadIdx.x);
  __syncthreads();
  Values values;
  load_values(values, pixel_table, input, weight, 0);
  store_values(shared.tiles[0], values);
  __syncthreads();
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const bool more = k_tile + 1 < k_tiles;
    if (more) load_values(values, pixel_table, input, weight, k_tile + 1);
    multiply(sum, shared.tiles[k_tile % 2], warp_row, warp_column);
    // The slot written here was last read before the barrier of the step before.
    if (more) store_values(shared.tiles[(k_tile + 1) % 2], values);
    __syncthreads();
  }

  // The loop ended with a barrier: the tiles are free.
  store_warp(output, bias, shared.staging[warp], sum, warp_row, pixel_table + warp_column);
}
