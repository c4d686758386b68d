// Convolution 11 x 11, stride 4, then ReLU, then 3 x 3 max-pooling with stride 2. The convolution
// is a matrix product of FP16 operands with FP32 sums: space to depth turns it into a 3 x 3
// convolution with stride 1 over 48 channels, and in shared memory a filter tap is then only a
// shifted address.
//
// A thread block computes 4 rows of pooled outputs of one image for all 96 filters, which takes 9
// rows of the convolution, 495 pixels; a warp computes 32 of them. The weights pass through three
// slots of shared memory, one tap at a time, two taps ahead. Only pooled values leave the chip.

#include <cuda_fp16.h>

#include "problem.h"

namespace {

// Space to depth: a block is the 4 x 4 pixels that the stride steps over. With 2 pixels of padding
// in front, filter tap (ky, kx) of output (oy, ox) lies in block (oy + ky / 4, ox + kx / 4).
static_assert(problem::kernel == 11 && problem::stride == 4 && problem::padding == 2);
constexpr int block_taps = 3;  // blocks that a filter spans, in y and in x
constexpr int blocks_wide = problem::out_width + block_taps - 1;
static_assert((blocks_wide - 1) * 4 - problem::padding == problem::width - 2,
              "the last block in a row or column ends 2 pixels outside the image");
static_assert(problem::width == problem::height && problem::width % 4 == 0 &&
              problem::out_width == problem::out_height);

constexpr int image_pixels = problem::height * problem::width;
constexpr int plane = problem::out_height * problem::out_width;

// The product's depth: block taps, channels in each, 16 pixels of the block in each.
constexpr int taps = block_taps * block_taps;
constexpr int k_steps = taps * problem::in_channels;
constexpr int filter_pairs = problem::filters / 16;  // pairs of 8-wide matrix tiles
static_assert(problem::filters % 32 == 0);
constexpr int tap_vectors = problem::in_channels * filter_pairs * 32;  // uint4 of packed weights
constexpr int slots = 3;

static_assert(problem::pool_kernel == 3 && problem::pool_stride == 2);
static_assert(problem::out_width == 2 * problem::pooled_width + 1 &&
              problem::pooled_width == problem::pooled_height && problem::pooled_width < 32);
constexpr int pooled_plane = problem::pooled_height * problem::pooled_width;

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int pooled_rows = 4;
constexpr int tile_rows = 2 * pooled_rows + 1;
static_assert(tile_rows * problem::out_width <= warps * 32);
constexpr int tile_block_rows = tile_rows + block_taps - 1;
constexpr int load_batch = 8;

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void copy_async(uint4* shared, const uint4* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}

__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `pending` of this thread's latest groups are unfinished.
template <int pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Four 8 x 8 matrices of halves; lanes 8i to 8i + 7 give the row addresses of matrix i.
__device__ void load_matrices(unsigned (&m)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

/// d (16 x 8, FP32) += a (16 x 16, FP16) · b (16 x 8, FP16).
__device__ void multiply_accumulate(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// What a product of packed weights becomes: scale · product + bias.
struct Finish {
  float scale;
  float bias;
};

/// Half a block of one channel: two rows of four pixels. `x` and `y` are those of its first pixel,
/// both even; rows and pairs of pixels lie either inside the image or in the padding as a whole.
struct HalfBlock {
  float2 pixels[2][2];

  __device__ void load(const float* __restrict__ channel, int y, int x) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const int pair_x = x + 2 * pair;
        const bool inside = y >= 0 && y < problem::height && pair_x >= 0 && pair_x < problem::width;
        pixels[row][pair] =
            inside ? *reinterpret_cast<const float2*>(channel + (y + row) * problem::width + pair_x)
                   : float2{0.0f, 0.0f};
      }
    }
  }

  __device__ uint4 halves() const {
    return {halves(pixels[0][0]), halves(pixels[0][1]), halves(pixels[1][0]), halves(pixels[1][1])};
  }

 private:
  static __device__ unsigned halves(float2 pair) {
    const __half2 both = __floats2half2_rn(pair.x, pair.y);
    return *reinterpret_cast<const unsigned*>(&both);
  }
};

// The image tile in shared memory: [channel][half of a block][row of blocks][block], 16 bytes each.
// Neighbouring blocks are neighbours in memory, so the eight rows of a matrix that ldmatrix reads
// fall into different banks, and a tap is the same address plus a constant.
constexpr int half_block_stride = tile_block_rows * blocks_wide;
constexpr int tile_units = problem::in_channels * 2 * half_block_stride;

/// Converts the rows of blocks from `first_row` on. What lies outside the image becomes zero.
__device__ void load_tile(uint4* tile, const float* __restrict__ image, int first_row) {
#pragma unroll 1
  for (int base = 0; base < tile_units; base += load_batch * threads) {
    HalfBlock loaded[load_batch];
#pragma unroll
    for (int i = 0; i < load_batch; ++i) {
      const int unit = base + i * threads + static_cast<int>(threadIdx.x);
      const int block_x = unit % blocks_wide;
      const int block_y = unit / blocks_wide % tile_block_rows + first_row;
      const int half = unit / half_block_stride % 2;
      const int channel = unit / half_block_stride / 2;
      if (unit < tile_units) {
        loaded[i].load(image + channel * image_pixels, 4 * block_y + 2 * half - problem::padding,
                       4 * block_x - problem::padding);
      }
    }
#pragma unroll
    for (int i = 0; i < load_batch; ++i) {
      const int unit = base + i * threads + static_cast<int>(threadIdx.x);
      if (unit < tile_units) tile[unit] = loaded[i].halves();
    }
  }
}

/// Starts the copies of one tap's weights.
__device__ void request_tap(uint4* slot, const uint4* packed, int tap) {
  for (int i = threadIdx.x; i < tap_vectors; i += threads) {
    copy_async(slot + i, packed + tap * tap_vectors + i);
  }
}

using Accumulators = float[2][problem::filters / 8][4];

/// A warp's 32 pixels x all filters, for one tap. `pixels` are the lane's addresses for ldmatrix.
__device__ void multiply_tap(Accumulators& sums, const unsigned (&pixels)[2], int tap,
                             const uint4* weights) {
  const unsigned shift = (tap / block_taps * blocks_wide + tap % block_taps) * sizeof(uint4);
#pragma unroll
  for (int channel = 0; channel < problem::in_channels; ++channel) {
    unsigned a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      load_matrices(a[m], pixels[m] + shift + channel * 2 * half_block_stride * sizeof(uint4));
    }
#pragma unroll
    for (int pair = 0; pair < filter_pairs; ++pair) {
      const uint4 b = weights[(channel * filter_pairs + pair) * 32];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        multiply_accumulate(sums[m][2 * pair], a[m], b.x, b.y);
        multiply_accumulate(sums[m][2 * pair + 1], a[m], b.z, b.w);
      }
    }
  }
}

// Results of the convolution on their way to the pooling: 32 filters x 9 rows. Rows are padded to
// an even length for reads of two columns at once; the stride spreads the four columns and eight
// rows that a warp writes at once over the banks.
constexpr int staged_filters = 32;
constexpr int staged_width = problem::out_width + 1;
constexpr int staged_stride = 516;
static_assert(tile_rows * staged_width <= staged_stride && staged_stride % 32 == 4);
static_assert(staged_filters * staged_stride * 4 <= (tile_units + slots * tap_vectors) * 16);
static_assert(problem::batch * problem::filters * plane < (1 << 30), "offsets fit an int");

}  // namespace

/// Rewrites the weights as FP16 in the order in which the lanes of a warp hold them for the matrix
/// unit: [tap][channel][16 filters][lane][8]. Each filter is scaled by a power of two that
/// puts its largest weight between 1 and 2, so that small weights keep their digits. A thread block
/// does one filter.
extern "C" __global__ void __launch_bounds__(128)
    pack_weight(const float* __restrict__ weight, const float* __restrict__ bias,
                __half* __restrict__ packed, float2* __restrict__ finish) {
  constexpr int kernel_area = problem::kernel * problem::kernel;
  constexpr int filter_weights = problem::in_channels * kernel_area;
  __shared__ float warp_largest[4];
  const int filter = blockIdx.x;
  const float* own = weight + filter * filter_weights;

  float largest = 0.0f;
  for (int i = threadIdx.x; i < filter_weights; i += blockDim.x) {
    largest = fmaxf(largest, fabsf(own[i]));
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  if (threadIdx.x % 32 == 0) warp_largest[threadIdx.x / 32] = largest;
  __syncthreads();
  largest = fmaxf(fmaxf(warp_largest[0], warp_largest[1]), fmaxf(warp_largest[2], warp_largest[3]));
  // The exponent as the float's bits hold it, kept where 2^exponent and 2^−exponent are both
  // normal.
  const int biased = static_cast<int>(__float_as_uint(largest) >> 23);
  const int exponent = min(max(biased - 127, -100), 100);
  const float up = __uint_as_float(static_cast<unsigned>(127 - exponent) << 23);
  const float down = __uint_as_float(static_cast<unsigned>(127 + exponent) << 23);

  for (int i = threadIdx.x; i < k_steps * 16; i += blockDim.x) {
    const int step = i / 16;
    const int k = i % 16;
    const int tap = step / problem::in_channels;
    const int channel = step % problem::in_channels;
    const int ky = tap / block_taps * 4 + k / 4;
    const int kx = tap % block_taps * 4 + k % 4;
    const bool inside = ky < problem::kernel && kx < problem::kernel;
    const float value = inside ? own[channel * kernel_area + ky * problem::kernel + kx] * up : 0.0f;
    // B of m16n8k16: lane 4n + (k mod 8) / 2 holds column n; rows k and k + 1 in one register, rows
    // k + 8 and k + 9 in the next.
    const int lane = filter % 8 * 4 + k % 8 / 2;
    const int slot = filter / 8 % 2 * 4 + k / 8 * 2 + k % 2;
    packed[((step * filter_pairs + filter / 16) * 32 + lane) * 8 + slot] = __float2half_rn(value);
  }
  if (threadIdx.x == 0) finish[filter] = {down, bias[filter]};
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    convolve_pool(const float* __restrict__ input, const uint4* __restrict__ packed,
                  const float2* __restrict__ finish, float* __restrict__ output) {
  extern __shared__ uint4 shared[];
  uint4* const tile = shared;
  uint4* const weights = shared + tile_units;
  float* const staged = reinterpret_cast<float*>(shared);
  __shared__ Finish finishes[problem::filters];

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int image = blockIdx.y;
  const int first_pooled_row = blockIdx.x * pooled_rows;
  const int pooled_count = min(pooled_rows, problem::pooled_height - first_pooled_row);
  const int first_row = 2 * first_pooled_row;
  const int first_pixel = first_row * problem::out_width;
  const int tile_count = (2 * pooled_count + 1) * problem::out_width;
  const bool has_pixels = warp * 32 < tile_count;  // the last tile of an image is shorter

#pragma unroll
  for (int tap = 0; tap < slots - 1; ++tap) {
    request_tap(weights + tap * tap_vectors, packed, tap);
    commit_copies();
  }
  if (threadIdx.x < problem::filters) {
    finishes[threadIdx.x] = {finish[threadIdx.x].x, finish[threadIdx.x].y};
  }
  load_tile(tile, input + image * problem::in_channels * image_pixels, first_row);

  // ldmatrix: lanes 0 to 15 point to pixels 0 to 15 of the first half of the depth, lanes 16 to 31
  // to the same pixels of the second. Lanes beyond the tile's pixels repeat its last one.
  unsigned pixels[2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const int pixel = first_pixel + min(warp * 32 + m * 16 + lane % 16, tile_count - 1);
    const int block = (pixel / problem::out_width - first_row) * blocks_wide +
                      pixel % problem::out_width + lane / 16 * half_block_stride;
    pixels[m] = shared_address(tile + block);
  }

  Accumulators sums = {};
#pragma unroll 1
  for (int tap = 0; tap < taps; ++tap) {
    wait_for_copies<slots - 2>();
    // Everybody's copies of this tap have arrived (the first time, the image tile too), and
    // everybody has finished with the tap before, whose slot is filled next.
    __syncthreads();
    const int requested = tap + slots - 1;
    if (requested < taps) {
      request_tap(weights + requested % slots * tap_vectors, packed, requested);
    }
    commit_copies();
    if (has_pixels) {
      multiply_tap(sums, pixels, tap, weights + tap % slots * tap_vectors + lane);
    }
  }
  wait_for_copies<0>();

  // Where the thread's accumulators go: rows lane / 4 and lane / 4 + 8 of its two matrix tiles.
  int staged_pixels[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int pixel = warp * 32 + m * 16 + lane / 4 + h * 8;
      staged_pixels[m][h] = pixel < tile_count ? pixel / problem::out_width * staged_width +
                                                     pixel % problem::out_width
                                               : -1;
    }
  }

#pragma unroll
  for (int part = 0; part < problem::filters / staged_filters; ++part) {
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < staged_filters / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int filter = n * 8 + lane % 4 * 2 + i % 2;
          const int pixel = staged_pixels[m][i / 2];
          if (pixel >= 0) {
            staged[filter * staged_stride + pixel] = sums[m][part * (staged_filters / 8) + n][i];
          }
        }
      }
    }
    __syncthreads();
    // A lane holds two columns of one filter; the third of its window is its neighbour's first.
    // Scaling by a positive number, adding the bias and ReLU keep the order, so they follow the
    // maximum.
#pragma unroll 1
    for (int row = warp; row < staged_filters; row += warps) {
      const int filter = part * staged_filters + row;
      const Finish f = finishes[filter];
      const float* columns = staged + row * staged_stride + 2 * min(lane, problem::pooled_width);
      float* to = output + (image * problem::filters + filter) * pooled_plane +
                  first_pooled_row * problem::pooled_width + lane;
#pragma unroll
      for (int p = 0; p < pooled_rows; ++p) {
        if (p >= pooled_count) break;
        const float2 top = *reinterpret_cast<const float2*>(columns + 2 * p * staged_width);
        const float2 middle =
            *reinterpret_cast<const float2*>(columns + (2 * p + 1) * staged_width);
        const float2 bottom =
            *reinterpret_cast<const float2*>(columns + (2 * p + 2) * staged_width);
        const float left = fmaxf(fmaxf(top.x, middle.x), bottom.x);
        const float centre = fmaxf(fmaxf(top.y, middle.y), bottom.y);
        const float right = __shfl_down_sync(0xffffffffu, left, 1);
        const float largest = fmaxf(fmaxf(left, centre), right);
        if (lane < problem::pooled_width) {
          __stcs(to + p * problem::pooled_width, fmaxf(fmaf(largest, f.scale, f.bias), 0.0f));
        }
      }
    }
  }
}
