// Convolution 11 x 11, stride 4, as a matrix product of FP16 operands with FP32 sums. Space to depth
// turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of blocks
// (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only another
// address for ldmatrix, and no pixel is copied more than once.
//
// Filters are the rows of the matrix unit and pixels its columns. A consumer warp keeps 16 filters in
// registers and goes down a strip of output rows: each row of blocks is read once and multiplied by all
// three rows of taps, for the three rows of the convolution that it belongs to, whose sums are in registers
// too. The running maximum of a window's rows lies in shared memory; the horizontal half of the pooling,
// scale, bias and ReLU follow on the way out.
//
// A thread block computes half of the filters, with three consumer warps, for a contiguous strip of pooled
// rows; two of them share a multiprocessor. A fourth warp, the mover, brings the input through registers
// into a ring of block rows, and while its loads are under way it pools and writes results out.

#include <cuda_fp16.h>

#include "problem.h"

#ifndef RING
#define RING 10
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
constexpr int rows = problem::batch * pooled_height;
static_assert(problem::batch * filters * pooled_pixels < (1 << 30), "offsets fit an int");

constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int own_filters = filters / halves;
constexpr int warp_filters = 16;
constexpr int row_steps = block_taps * channels;  // of 16 along the product's depth, in a row of blocks
constexpr int k_steps = block_taps * row_steps;
constexpr int kernel_area = problem::kernel * problem::kernel;
constexpr int filter_weights = channels * kernel_area;

constexpr int consumers = own_filters / warp_filters;  // warps
constexpr int threads = (consumers + 1) * 32;
constexpr int row_squares = channels * (blocks_wide - 1);  // of 4 x 4 pixels in a row of blocks
constexpr int lane_squares = (row_squares + 31) / 32;

constexpr int ring = RING;
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = 2 * channels * plane_bytes;

constexpr int tiles_n = (out_width + 7) / 8;  // 8 pixels each
constexpr int staged_stride = tiles_n * 8;
static_assert(staged_stride % 32 == 24, "four rows of a tile are in different banks");

// A warp's weights lie where its results are staged later.
constexpr int weight_bytes = k_steps * 32 * 16;
constexpr int staged_bytes = warp_filters * staged_stride * 4;  // of a row
constexpr int stages = 3;                                       // rows of results
constexpr int offset_ring = 0;
constexpr int offset_own = offset_ring + ring * row_bytes;
constexpr int own_bytes = weight_bytes;
static_assert(stages * staged_bytes <= own_bytes);
constexpr int offset_finish = offset_own + consumers * own_bytes;
constexpr int offset_bars = offset_finish + own_filters * 8;
constexpr int shared_bytes = offset_bars + 2 * (ring + stages) * 8;
static_assert(shared_bytes <= 101376);

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

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

/// The same where only the rows of taps from `first` to `last` meet output rows that are wanted.
__device__ __forceinline__ void multiply_row(Sums& sums, const uint4 (&weights)[k_steps], unsigned pixels,
                                             int first, int last) {
  static_assert(block_taps == 3);
  if (first == 0 && last == 2) {
    multiply_row<0, 2>(sums, weights, pixels);
  } else {
    if (last == 2) multiply_row<2, 2>(sums, weights, pixels);
    if (first <= 1 && last >= 1) multiply_row<1, 1>(sums, weights, pixels);
    if (first == 0) multiply_row<0, 0>(sums, weights, pixels);
  }
}

/// What a sum becomes: scale · sum + bias.
struct Finish {
  float scale;
  float bias;
};

/// Rewrites the weights of 16 filters as FP16, in the order in which the lanes of a warp hold them for the
/// matrix unit: [step][lane][8], a step being a tap of blocks and a channel. Each filter is scaled by a
/// power of two that puts its largest weight between 1 and 2, so that small weights keep their digits.
__device__ __forceinline__ void pack_weights(__half* packed, Finish* finishes,
                                             const float* __restrict__ weight,
                                             const float* __restrict__ bias, int first_filter, int lane) {
  for (int i = lane; i < warp_filters * filter_weights / 32; i += 32) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(weight + first_filter * filter_weights + i * 32));
  }
  constexpr int values = (filter_weights + 31) / 32;  // of a filter in a lane
  constexpr int batch = 8;                            // filters at a time
  static_assert(warp_filters % batch == 0);
  int places[values];
#pragma unroll
  for (int i = 0; i < values; ++i) {
    const int index = lane + 32 * i;
    const int channel = index / kernel_area, ky = index % kernel_area / problem::kernel,
              kx = index % problem::kernel;
    const int step = (ky / 4 * block_taps + kx / 4) * channels + channel;
    const int k = kx / 2 % 2 * 8 + ky % 4 * 2 + kx % 2;
    // A of m16n8k16: lane 4m + (k mod 8) / 2 holds rows m and m + 8; its registers are k and k + 1 of
    // either row, then k + 8 and k + 9.
    places[i] = (step * 32 + k % 8 / 2) * 8 + k / 8 * 4 + k % 2;
  }
#pragma unroll 1
  for (int first = 0; first < warp_filters; first += batch) {
    float loaded[batch][values];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
#pragma unroll
      for (int i = 0; i < values; ++i) {
        const int index = lane + 32 * i;
        loaded[j][i] = index < filter_weights
                           ? __ldg(weight + (first_filter + first + j) * filter_weights + index)
                           : 0.0f;
      }
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const int filter = first + j;
      float largest = 0.0f;
#pragma unroll
      for (int i = 0; i < values; ++i) largest = fmaxf(largest, fabsf(loaded[j][i]));
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
      }
      // The exponent as the float's bits hold it, kept where 2^exponent and 2^-exponent are both normal.
      const int biased = static_cast<int>(__float_as_uint(largest) >> 23);
      const int exponent = min(max(biased - 127, -100), 100);
      const float up = __uint_as_float(static_cast<unsigned>(127 - exponent) << 23);
      const float down = __uint_as_float(static_cast<unsigned>(127 + exponent) << 23);
      __half* const to = packed + filter % 8 * 4 * 8 + filter / 8 * 2;
#pragma unroll
      for (int i = 0; i < values; ++i) {
        if (lane + 32 * i < filter_weights) to[places[i]] = __float2half_rn(loaded[j][i] * up);
      }
      if (lane == 0) finishes[filter] = {down, __ldg(bias + first_filter + filter)};
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 2)
    convolve_pool(const float* __restrict__ input, const float* __restrict__ weight,
                  const float* __restrict__ bias, float* __restrict__ output) {
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
      bar_init(full + 8 * i, 1);
      bar_init(empty + 8 * i, consumers);
    }
    for (int i = 0; i < stages; ++i) {
      bar_init(staged_bars + 8 * i, consumers);
      bar_init(written_bars + 8 * i, 1);
    }
  }
  // The padding: the first unit of the left planes and the last of the right ones, for good. Weights
  // that no filter has, for taps outside the 11 x 11, are zero.
  for (int plane = threadIdx.x; plane < ring * channels * 2; plane += threads) {
    const int unit = plane % 2 == 0 ? 0 : blocks_wide - 1;
    *reinterpret_cast<uint4*>(memory + offset_ring + plane * plane_bytes + unit * 16) = {0, 0, 0, 0};
  }
  for (int i = threadIdx.x; i < consumers * own_bytes / 16; i += threads) {
    reinterpret_cast<uint4*>(memory + offset_own)[i] = {0, 0, 0, 0};
  }
  __syncthreads();

  const int half = blockIdx.x % halves;
  const int strip_index = blockIdx.x / halves, strips = (gridDim.x + halves - 1) / halves;
  const int begin = static_cast<int>(1ll * rows * strip_index / strips);
  const int end = static_cast<int>(1ll * rows * (strip_index + 1) / strips);
  if (begin == end) return;
  Strip strip(begin, end);

  if (warp == consumers) {
    // ---- the mover ----
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

    const Finish* const finishes = reinterpret_cast<const Finish*>(memory + offset_finish);
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
          // A lane holds two columns; the third of its window is its neighbour's first. Scaling by a
          // positive number, adding the bias and ReLU keep the order, so they follow the maximum.
          float* const plane = output +
                               (out_row / pooled_height * filters + half * own_filters) * pooled_pixels +
                               out_row % pooled_height * pooled_width + lane;
          const float* const best =
              reinterpret_cast<const float*>(memory + offset_own + out.slot * staged_bytes) +
              2 * min(lane, staged_stride / 2 - 1);
#pragma unroll
          for (int i = 0; i < own_filters; ++i) {
            const float2 columns = *reinterpret_cast<const float2*>(
                best + i / warp_filters * (own_bytes / 4) + i % warp_filters * staged_stride);
            const float right = __shfl_down_sync(0xffffffffu, columns.x, 1);
            const float largest = fmaxf(fmaxf(columns.x, columns.y), right);
            const Finish f = finishes[i];
            if (lane < pooled_width) plane[i * pooled_pixels] = fmaxf(fmaf(largest, f.scale, f.bias), 0.0f);
          }
          __syncwarp();
          if (lane == 0) bar_arrive(written_bars + 8 * out.slot);
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
      __syncwarp();
      if (lane == 0) bar_arrive(full + 8 * turn.slot);
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
  const int first_filter = half * own_filters + warp * warp_filters;
  Finish* const finishes = reinterpret_cast<Finish*>(memory + offset_finish) + warp * warp_filters;
  unsigned char* const own = memory + offset_own + warp * own_bytes;
  pack_weights(reinterpret_cast<__half*>(own), finishes, weight, bias, first_filter, lane);
  __syncwarp();
  uint4 weights[k_steps];
#pragma unroll
  for (int i = 0; i < k_steps; ++i) weights[i] = reinterpret_cast<const uint4*>(own)[i * 32 + lane];
  __syncwarp();
  // Maxima of the rows of a window so far, for the lane's pixels.
  float2* const best = reinterpret_cast<float2*>(own) + (lane / 4 * staged_stride + lane % 4 * 2) / 2;

  // ldmatrix: eight lanes point to the left halves of eight pixels, eight to their right halves, and so
  // on with the next pixels. The columns beyond the row's end meet whatever comes behind the row and are
  // not stored.
  const unsigned pixels = shared + offset_ring + lane / 8 % 2 * plane_bytes + (lane / 16 * 8 + lane % 8) * 16;

  Turn<ring> turn;
  Turn<stages> out;
  Sums sums;
  const auto put = [&](bool maximum) {
#pragma unroll
    for (int n = 0; n < tiles_n; ++n) {
      const Tile& sum = sums[block_taps - 1][n];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float2& at = best[out.slot * (staged_bytes / 8) + i * 4 * staged_stride + n * 4];
        float2 columns = {sum[2 * i], sum[2 * i + 1]};
        if (maximum) columns = {fmaxf(columns.x, at.x), fmaxf(columns.y, at.y)};
        at = columns;
      }
    }
  };
  do {
    const int first_row = strip.first_convolved(), last_row = strip.last_convolved();
#pragma unroll 1
    for (int block_row = first_row; block_row <= last_row + block_taps - 1; ++block_row) {
      // The rows of taps under which there is a row of the strip.
      const int first = max(block_row - last_row, 0);
      const int last = min(block_row - first_row, block_taps - 1);
      bar_wait(full + 8 * turn.slot, turn.parity);
      multiply_row(sums, weights, pixels + turn.slot * row_bytes, first, last);
      __syncwarp();
      if (lane == 0) bar_arrive(empty + 8 * turn.slot);
      turn.advance();
      if (last < block_taps - 1) continue;

      // An odd row is the second of its window; an even one is the last of a window and the first of the
      // next, but for an image's or the strip's first and last.
      const int row = block_row - (block_taps - 1);
      if (row > first_row) {
        put(true);
        if (row % 2 == 1) continue;
        __syncwarp();
        if (lane == 0) bar_arrive(staged_bars + 8 * out.slot);
        out.advance();
        if (row == last_row) continue;
      }
      bar_wait(written_bars + 8 * out.slot, out.parity ^ 1);
      put(false);
    }
  } while (strip.next_image());
}
