// Convolution 11 x 11, stride 4, as a matrix product of FP16 operands with FP32 sums. Space to depth
// turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of blocks
// (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only another
// address for ldmatrix, and no pixel is copied more than once.
//
// Filters are the rows of the matrix unit and pixels its columns. A consumer warp keeps 16 filters in
// registers and goes down a strip of output rows: each row of blocks is read once and multiplied by all
// three rows of taps, for the three rows of the convolution that it belongs to, whose sums are in registers
// too. Pooling is maxima and one shuffle a window in registers; finished rows wait in shared memory.
//
// A thread block computes half of the filters, with three consumer warps, for a contiguous strip of pooled
// rows; two of them share a multiprocessor. A fourth warp, the mover, brings the input through registers
// into a ring of block rows, and while its loads are under way it scales results and writes them out.
//
// That is for the sizes of the problem itself, whose constants stand below. Other sizes have a kernel of their own,
// at the end.

#include <cuda_fp16.h>

#include "problem.h"

namespace at_own_sizes {

namespace problem {
inline constexpr int batch = 100;
inline constexpr int in_channels = 3;
inline constexpr int height = 224;
inline constexpr int width = 224;
inline constexpr int filters = 96;
inline constexpr int kernel = 11;
inline constexpr int stride = 4;
inline constexpr int padding = 2;
inline constexpr int out_height = 55;
inline constexpr int out_width = 55;
inline constexpr int pool_kernel = 3;
inline constexpr int pool_stride = 2;
inline constexpr int pooled_height = 27;
inline constexpr int pooled_width = 27;
inline constexpr double bound = 0.0524863881081478;
inline constexpr int input_elements = 15052800;
inline constexpr int weight_elements = 34848;
inline constexpr int bias_elements = 96;
inline constexpr int output_elements = 6998400;
}  // namespace problem

#ifndef RING
#define RING 12
#endif
#ifndef STAGES
#define STAGES 4
#endif

namespace {

static_assert(problem::kernel == 11 && problem::stride == 4 && problem::padding == 2);
static_assert(problem::width == problem::height && problem::width % 8 == 0 &&
              problem::in_channels == 3 && problem::filters == 96);
constexpr int channels = problem::in_channels;
constexpr int filters = problem::filters;
constexpr int out_width = problem::out_width;
constexpr int out_height = problem::out_height;
constexpr int block_taps = 3;  // blocks that a filter spans, in y and in x
constexpr int blocks_wide = out_width + block_taps - 1;
static_assert(blocks_wide == problem::width / 4 + 1, "half a block of padding on either side");
constexpr int blocks_high = out_height + block_taps - 1;
constexpr int image_pixels = problem::height * problem::width;
static_assert(problem::pool_kernel == 3 && problem::pool_stride == 2);
static_assert(out_width == 2 * problem::pooled_width + 1 && out_height == 2 * problem::pooled_height + 1);
constexpr int pooled_height = problem::pooled_height;
constexpr int pooled_width = problem::pooled_width;
static_assert(pooled_width < 32, "a lane for each column");
constexpr int pooled_pixels = pooled_height * pooled_width;
// A strip's beginning and an image's cost as much as two pooled rows: every image counts two more, so that
// strips take the same time.
constexpr int image_shares = pooled_height + 2;
constexpr int shares = problem::batch * image_shares;
static_assert(problem::batch * filters * pooled_pixels < (1 << 30), "offsets fit an int");

constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int own_filters = filters / halves;
constexpr int warp_filters = 16;
constexpr int row_steps = block_taps * channels;  // of 16 along the product's depth, in a row of blocks
constexpr int k_steps = block_taps * row_steps;

constexpr int consumers = own_filters / warp_filters;  // warps
constexpr int threads = (consumers + 1) * 32;
constexpr int row_squares = channels * (blocks_wide - 1);  // of 4 x 4 pixels in a row of blocks
constexpr int lane_squares = (row_squares + 31) / 32;

constexpr int ring = RING;
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = 2 * channels * plane_bytes;

constexpr int tiles_n = (out_width + 7) / 8;  // 8 pixels each
constexpr int staged_stride = tiles_n * 4;
static_assert(staged_stride > pooled_width && staged_stride % 32 == 28, "a tile is in different banks");

constexpr int staged_bytes = warp_filters * staged_stride * 4;  // of a row
constexpr int stages = STAGES;                                  // rows of results
constexpr int offset_ring = 0;
// Behind the ring is the unit that a last tile reads besides a row's own.
constexpr int offset_own = offset_ring + ring * row_bytes + 16;
constexpr int own_bytes = stages * staged_bytes;
constexpr int offset_finish = offset_own + consumers * own_bytes;  // scale and bias of a filter
constexpr int offset_bars = offset_finish + own_filters * 8;
constexpr int shared_bytes = offset_bars + 2 * (ring + stages) * 8;
static_assert(shared_bytes <= 101376);

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

/// Every lane arrives for what it has read or written itself.
__device__ __forceinline__ void bar_arrive(unsigned bar) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(bar) : "memory");
}

__device__ __forceinline__ bool bar_passed(unsigned bar, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void bar_wait(unsigned bar, unsigned parity) {
  while (!bar_passed(bar, parity)) {
  }
}

/// A place in a ring, and the parity of its turn.
template <int size>
struct Turn {
  int slot = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == size) {
      slot = 0;
      parity ^= 1;
    }
  }
};

/// 8 x 8 matrices of halves; lanes 8i to 8i + 7 give the row addresses of matrix i.
__device__ __forceinline__ void load_four(unsigned* m, unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void load_two(unsigned* m, unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(m[0]), "=r"(m[1])
               : "r"(address)
               : "memory");
}

using Tile = float[4];

/// d = a (16 x 16, FP16) · b (16 x 8, FP16) + c (16 x 8, FP32).
__device__ __forceinline__ void multiply_add(Tile& d, const uint4& a, const unsigned* b, const float* c) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
        "f"(c[3]));
}

/// A strip's pooled rows, image by image: rows first_row to last_row of one image at a time.
struct Strip {
  int image, first_row, last_row;
  int left;  // rows in later images

  __device__ Strip(int begin, int end) : image(begin / pooled_height), left(end - begin) {
    take(begin % pooled_height);
  }

  /// Rows of the convolution that its rows in this image need.
  __device__ int first_convolved() const { return problem::pool_stride * first_row; }
  __device__ int last_convolved() const {
    return problem::pool_stride * last_row + problem::pool_kernel - 1;
  }

  __device__ bool next_image() {
    if (left == 0) return false;
    ++image;
    take(0);
    return true;
  }

 private:
  __device__ void take(int first) {
    first_row = first;
    last_row = min(first + left, pooled_height) - 1;
    left -= last_row - first_row + 1;
  }
};

/// Four rows of four pixels of one channel.
struct Square {
  float4 row[4];

  /// Its third row is at `third`. The first two, or the last two, may lie outside the image.
  __device__ __forceinline__ void load(const float* __restrict__ third, bool upper, bool lower) {
#pragma unroll
    for (int dy = 0; dy < 4; ++dy) {
      const float4* const from = reinterpret_cast<const float4*>(third + (dy - 2) * problem::width);
      row[dy] = (dy < 2 ? upper : lower) ? __ldg(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }

  static __device__ __forceinline__ unsigned pair(float x, float y) {
    const __half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned*>(&both);
  }
  __device__ __forceinline__ uint4 left() const {
    return {pair(row[0].x, row[0].y), pair(row[1].x, row[1].y), pair(row[2].x, row[2].y),
            pair(row[3].x, row[3].y)};
  }
  __device__ __forceinline__ uint4 right() const {
    return {pair(row[0].z, row[0].w), pair(row[1].z, row[1].w), pair(row[2].z, row[2].w),
            pair(row[3].z, row[3].w)};
  }
};

/// The sums of three output rows: sums[t] is of the row that meets a block row with its taps' row t.
using Sums = Tile[block_taps][tiles_n];

/// Multiplies a row of blocks, whose first pixels are at `pixels`, by the rows of taps from `last` down to
/// `first`. What a row of taps has summed up goes on with the next one: the block row before was one less.
template <int first, int last>
__device__ __forceinline__ void multiply_row(Sums& sums, const uint4 (&weights)[k_steps], unsigned pixels) {
#pragma unroll
  for (int i = 0; i < row_steps; ++i) {
    const unsigned from = pixels + i % channels * 2 * plane_bytes + i / channels * 16;
    unsigned b[tiles_n][2];
#pragma unroll
    for (int n = 0; n + 1 < tiles_n; n += 2) load_four(b[n], from + n * 8 * 16);
    if (tiles_n % 2 == 1) load_two(b[tiles_n - 1], from + (tiles_n - 1) * 8 * 16);
#pragma unroll
    for (int ty = last; ty >= first; --ty) {
#pragma unroll
      for (int n = 0; n < tiles_n; ++n) {
        const Tile zero = {};
        multiply_add(sums[ty][n], weights[ty * row_steps + i], b[n],
                     i > 0 ? sums[ty][n] : ty > 0 ? sums[ty - 1][n] : zero);
      }
    }
  }
}

}  // namespace

/// Rewrites the weights as FP16 in the order in which a warp's lanes hold them for the matrix unit: [filter
/// div 16][step][lane][8], a step being a tap of blocks and a channel. Each filter is scaled by a power of
/// two that puts its largest weight between 1 and 2, so that small weights keep their digits. A thread block
/// does one filter.
extern "C" __global__ void __launch_bounds__(128)
    pack_weight(const float* __restrict__ weight, const float* __restrict__ bias,
                __half2* __restrict__ packed, float2* __restrict__ finish) {
  constexpr int kernel_area = problem::kernel * problem::kernel;
  constexpr int filter_weights = channels * kernel_area;
  __shared__ float own[filter_weights];
  __shared__ float warp_largest[4];
  const int filter = blockIdx.x;

  float largest = 0.0f;
#pragma unroll
  for (int i = threadIdx.x; i < filter_weights; i += 128) {
    const float value = weight[filter * filter_weights + i];
    own[i] = value;
    largest = fmaxf(largest, fabsf(value));
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  if (threadIdx.x % 32 == 0) warp_largest[threadIdx.x / 32] = largest;
  __syncthreads();
  largest = fmaxf(fmaxf(warp_largest[0], warp_largest[1]), fmaxf(warp_largest[2], warp_largest[3]));
  // The exponent as the float's bits hold it, kept where 2^exponent and 2^-exponent are both normal.
  const int biased = static_cast<int>(__float_as_uint(largest) >> 23);
  const int exponent = min(max(biased - 127, -100), 100);
  const float up = __uint_as_float(static_cast<unsigned>(127 - exponent) << 23);
  const float down = __uint_as_float(static_cast<unsigned>(127 + exponent) << 23);

#pragma unroll
  for (int i = threadIdx.x; i < k_steps * 8; i += 128) {
    const int step = i / 8, k = i % 8 * 2;
    const int tap = step / channels, channel = step % channels;
    const int ky = tap / block_taps * 4 + k % 8 / 2;
    const int kx = tap % block_taps * 4 + k / 8 * 2;
    const float* const from = own + channel * kernel_area + ky * problem::kernel + kx;
    const bool inside = ky < problem::kernel;
    const float x = inside && kx < problem::kernel ? from[0] * up : 0.0f;
    const float y = inside && kx + 1 < problem::kernel ? from[1] * up : 0.0f;
    // A of m16n8k16: lane 4m + (k mod 8) / 2 holds rows m and m + 8; its registers are k and k + 1 of
    // either row, then k + 8 and k + 9.
    const int row = filter % warp_filters;
    packed[((filter / warp_filters * k_steps + step) * 32 + row % 8 * 4 + k % 8 / 2) * 4 + k / 8 * 2 +
           row / 8] = __floats2half2_rn(x, y);
  }
  if (threadIdx.x == 0) finish[filter] = {down, bias[filter]};
}

extern "C" __global__ void __launch_bounds__(threads, 2)
    convolve_pool(const float* __restrict__ input, const uint4* __restrict__ packed,
                  const float2* __restrict__ finish, float* __restrict__ output) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned full = shared + offset_bars;
  const unsigned empty = full + ring * 8;
  const unsigned staged_bars = empty + ring * 8;
  const unsigned written_bars = staged_bars + stages * 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full + 8 * i, 32);
      bar_init(empty + 8 * i, consumers * 32);
    }
    for (int i = 0; i < stages; ++i) {
      bar_init(staged_bars + 8 * i, consumers * 32);
      bar_init(written_bars + 8 * i, 32);
    }
  }
  // The padding: the first unit of the left planes and the last of the right ones, for good.
  for (int plane = threadIdx.x; plane < ring * channels * 2; plane += threads) {
    const int unit = plane % 2 == 0 ? 0 : blocks_wide - 1;
    *reinterpret_cast<uint4*>(memory + offset_ring + plane * plane_bytes + unit * 16) = {0, 0, 0, 0};
  }
  const int half = blockIdx.x % halves;
  __syncthreads();

  const int strip_index = blockIdx.x / halves, strips = (gridDim.x + halves - 1) / halves;
  const auto first_row = [&](int strip) {
    const int share = static_cast<int>(1ll * shares * strip / strips);
    return share / image_shares * pooled_height + min(share % image_shares, pooled_height);
  };
  const int begin = first_row(strip_index), end = first_row(strip_index + 1);
  if (begin == end) return;
  Strip strip(begin, end);

  if (warp == consumers) {
    // ---- the mover ----
    float2* const finishes = reinterpret_cast<float2*>(memory + offset_finish);
    for (int i = lane; i < own_filters; i += 32) finishes[i] = __ldg(finish + half * own_filters + i);
    __syncwarp();
    // Where a lane's squares of a row of blocks come from, and where their units go. Pixels 4c + 2 and
    // 4c + 3 of a row are the left half of block c + 1, the two before them the right half of block c.
    int block_row = strip.first_convolved();
    const float* from[lane_squares];
    int to[lane_squares];
#pragma unroll
    for (int i = 0; i < lane_squares; ++i) {
      const int square = lane + i * 32;
      const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
      int pixel = (strip.image * channels + channel) * image_pixels +
                  4 * block_row * problem::width + 4 * column;
      to[i] = channel * 2 * plane_bytes + column * 16;
      // Kept as they are: the compiler else folds them into pointers, with the sign lost.
      asm volatile("" : "+r"(pixel), "+r"(to[i]));
      from[i] = input + pixel;
    }
    const auto exists = [&](int i) { return lane + i * 32 < row_squares; };
    const auto passed = [&](unsigned bar, unsigned parity) {
      return __all_sync(0xffffffffu, bar_passed(bar, parity)) != 0;
    };

    Turn<ring> turn;
    Turn<stages> out;
    int out_row = begin;
    bool more = true;
#pragma unroll 1
    while (more || out_row < end) {
      Square squares[lane_squares];
      if (more) {
        const auto load = [&](bool upper, bool lower) {
#pragma unroll
          for (int i = 0; i < lane_squares; ++i) {
            if (exists(i)) squares[i].load(from[i], upper, lower);
          }
        };
        if (block_row > 0 && block_row < blocks_high - 1) {
          load(true, true);
        } else {
          load(block_row > 0, block_row == 0);
        }
      }
      // Results that are ready, until there is room for the row.
      do {
        if (out_row < end && passed(staged_bars + 8 * out.slot, out.parity)) {
          // Scaling by a positive number, adding the bias and ReLU keep the order: they follow the maximum.
          if (lane < pooled_width) {
            float* const plane = output +
                                 (out_row / pooled_height * filters + half * own_filters) * pooled_pixels +
                                 out_row % pooled_height * pooled_width + lane;
            const float* const staged =
                reinterpret_cast<const float*>(memory + offset_own + out.slot * staged_bytes) + lane;
#pragma unroll
            for (int i = 0; i < own_filters; ++i) {
              const float largest =
                  staged[i / warp_filters * (own_bytes / 4) + i % warp_filters * staged_stride];
              const float2 f = finishes[i];
              plane[i * pooled_pixels] = fmaxf(fmaf(largest, f.x, f.y), 0.0f);
            }
          }
          bar_arrive(written_bars + 8 * out.slot);
          out.advance();
          ++out_row;
        }
      } while (more ? !passed(empty + 8 * turn.slot, turn.parity ^ 1) : out_row < end);
      if (!more) break;

      unsigned char* const row = memory + offset_ring + turn.slot * row_bytes;
#pragma unroll
      for (int i = 0; i < lane_squares; ++i) {
        if (!exists(i)) continue;
        *reinterpret_cast<uint4*>(row + to[i] + 16) = squares[i].right();
        *reinterpret_cast<uint4*>(row + to[i] + plane_bytes) = squares[i].left();
      }
      bar_arrive(full + 8 * turn.slot);
      turn.advance();
      int step = 4 * problem::width;
      if (++block_row > strip.last_convolved() + block_taps - 1) {
        more = strip.next_image();
        block_row = 0;
        step = channels * image_pixels - (blocks_high - 1) * 4 * problem::width;
      }
#pragma unroll
      for (int i = 0; i < lane_squares; ++i) from[i] += step;
    }
    return;
  }

  // ---- consumers ----
  uint4 weights[k_steps];
  const uint4* const own_weights = packed + (half * consumers + warp) * k_steps * 32 + lane;
#pragma unroll
  for (int i = 0; i < k_steps; ++i) weights[i] = __ldg(own_weights + i * 32);
  unsigned char* const own = memory + offset_own + warp * own_bytes;
  float* const staged = reinterpret_cast<float*>(own) + lane / 4 * staged_stride + lane % 4;

  // ldmatrix: eight lanes point to the left halves of eight pixels, eight to their right halves, and so
  // on with the next pixels. The columns beyond the row's end meet whatever comes behind the row and are
  // not stored.
  const unsigned pixels = shared + offset_ring + lane / 8 % 2 * plane_bytes + (lane / 16 * 8 + lane % 8) * 16;

  Turn<ring> turn;
  Turn<stages> out;
  Sums sums = {};
  const auto next_row = [&] {
    bar_arrive(empty + 8 * turn.slot);
    turn.advance();
  };
  // At the end of an image and of the strip the last two rows of blocks meet no row with their first taps.
  const auto multiply = [&](bool at_end) {
    bar_wait(full + 8 * turn.slot, turn.parity);
    if (at_end) {
      multiply_row<1, 2>(sums, weights, pixels + turn.slot * row_bytes);
    } else {
      multiply_row<0, 2>(sums, weights, pixels + turn.slot * row_bytes);
    }
    next_row();
  };
  // The largest of a window's columns in a row. A lane holds two of them; the third is the next lane's first,
  // or that of the first of four lanes in the next tile. Behind the last tile there is no window.
  const auto largest = [&](int n, int i) {
    const Tile& sum = sums[block_taps - 1][n];
    const Tile& next = sums[block_taps - 1][min(n + 1, tiles_n - 1)];
    const float first = lane % 4 == 0 ? next[2 * i] : sum[2 * i];
    const float right = __shfl_sync(0xffffffffu, first, lane / 4 * 4 + (lane + 1) % 4);
    return fmaxf(fmaxf(sum[2 * i], sum[2 * i + 1]), right);
  };
  float best[tiles_n][2];  // of a window's rows so far
  do {
    // The first two rows of blocks complete no row.
#pragma unroll 1
    for (int i = 0; i < block_taps - 1; ++i) {
      bar_wait(full + 8 * turn.slot, turn.parity);
      multiply_row<0, 1>(sums, weights, pixels + turn.slot * row_bytes);
      next_row();
    }
    multiply(false);
#pragma unroll
    for (int n = 0; n < tiles_n; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) best[n][i] = largest(n, i);
    }
    // An odd row is the second of its window; an even one is the last of a window and the first of the next.
#pragma unroll 1
    for (int left = strip.last_row - strip.first_row; left >= 0; --left) {
      multiply(left == 0);
#pragma unroll
      for (int n = 0; n < tiles_n; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) best[n][i] = fmaxf(best[n][i], largest(n, i));
      }
      multiply(left == 0);
      bar_wait(written_bars + 8 * out.slot, out.parity ^ 1);
      float* const to = staged + out.slot * (staged_bytes / 4);
#pragma unroll
      for (int n = 0; n < tiles_n; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float row = largest(n, i);
          to[i * 8 * staged_stride + n * 4] = fmaxf(best[n][i], row);
          best[n][i] = row;
        }
      }
      bar_arrive(staged_bars + 8 * out.slot);
      out.advance();
    }
  } while (strip.next_image());
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

// A thread an element of the result: the largest of the convolution in its window, and zero.
extern "C" __global__ void __launch_bounds__(256)
    pool_any_size(const float* input, const float* weight, const float* bias, float* output) {
  using namespace problem;
  const long long element = 256ll * blockIdx.x + threadIdx.x;
  if (element >= output_elements) return;
  const int across = static_cast<int>(element % pooled_width);
  const int down = static_cast<int>(element / pooled_width % pooled_height);
  const int f = static_cast<int>(element / (1ll * pooled_width * pooled_height) % filters);
  const int n = static_cast<int>(element / (1ll * pooled_width * pooled_height * filters));
  float largest = 0.0f;
  for (int window = 0; window < pool_kernel * pool_kernel; ++window) {
    const int p = down * pool_stride + window / pool_kernel;
    const int q = across * pool_stride + window % pool_kernel;
    float sum = bias[f];
    for (int c = 0; c < in_channels; ++c) {
      for (int r = 0; r < problem::kernel; ++r) {
        const int y = p * stride + r - padding;
        if (y < 0 || y >= height) continue;
        const float* row = input + ((1ll * n * in_channels + c) * height + y) * width;
        const float* taps =
            weight + ((1ll * f * in_channels + c) * problem::kernel + r) * problem::kernel;
        for (int s = 0; s < problem::kernel; ++s) {
          const int x = q * stride + s - padding;
          if (x >= 0 && x < width) sum += row[x] * taps[s];
        }
      }
    }
    // A NaN stays one.
    largest = sum > largest || sum != sum ? sum : largest;
  }
  output[element] = largest;
}
