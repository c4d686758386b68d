// Convolution 11 x 11, stride 4, as a matrix product of FP16 operands with FP32 sums. Space to depth
// turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of blocks
// (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only another
// address for ldmatrix, and no pixel is copied more than once.
//
// Filters are the rows of the matrix unit and pixels its columns. A consumer warp keeps 16 filters in
// registers and goes down a strip of output rows: each row of blocks is read once and multiplied by all
// three rows of taps, for the three output rows that it belongs to, whose sums are in registers too.
//
// A thread block computes half of the filters, with three consumer warps, for a contiguous strip of output
// rows; two of them share a multiprocessor. A producer warp brings the input through registers into a ring
// of block rows.
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
inline constexpr double bound = 0.0524863881081478;
inline constexpr int input_elements = 15052800;
inline constexpr int weight_elements = 34848;
inline constexpr int bias_elements = 96;
inline constexpr int output_elements = 29040000;
}  // namespace problem

#ifndef RING
#define RING 10
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef AHEAD
#define AHEAD 4
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
constexpr int image_pixels = problem::height * problem::width;
constexpr int plane_pixels = out_height * out_width;
constexpr int rows = problem::batch * out_height;
static_assert(problem::batch * filters * plane_pixels < (1 << 30), "offsets fit an int");

constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int own_filters = filters / halves;
constexpr int warp_filters = 16;
constexpr int row_steps = block_taps * channels;  // of 16 along the product's depth, in a row of blocks
constexpr int k_steps = block_taps * row_steps;
constexpr int step_units = 33;  // of 16 bytes: one for a lane, and one that spreads steps over the banks
constexpr int kernel_area = problem::kernel * problem::kernel;
constexpr int filter_weights = channels * kernel_area;

constexpr int consumers = own_filters / warp_filters;  // warps
constexpr int threads = (consumers + 1) * 32;
constexpr int row_squares = channels * (blocks_wide - 1);  // of 4 x 4 pixels in a row of blocks
constexpr int lane_squares = (row_squares + 31) / 32;

constexpr int ring = RING;
constexpr int depth = DEPTH;  // block rows that the producer requests together
constexpr int ahead = AHEAD;  // block rows that it has brought to the L2 cache before
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = 2 * channels * plane_bytes;

constexpr int tiles_n = (out_width + 7) / 8;  // 8 pixels each
constexpr int staged_stride = tiles_n * 8;
static_assert(staged_stride % 32 == 24, "four rows of a tile are in different banks");

// The weights lie where a warp's results are staged later.
constexpr int weight_bytes = k_steps * step_units * 16;  // of a warp
constexpr int staged_bytes = warp_filters * staged_stride * 4;
constexpr int offset_ring = 0;
// Behind the ring is the unit that a last tile reads besides a row's own.
constexpr int offset_own = offset_ring + ring * row_bytes + 16;
constexpr int own_bytes = weight_bytes > staged_bytes ? weight_bytes : staged_bytes;
constexpr int offset_finish = offset_own + consumers * own_bytes;
constexpr int offset_bars = offset_finish + own_filters * 8;
constexpr int shared_bytes = offset_bars + 2 * ring * 8;
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

__device__ __forceinline__ void bar_wait(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (done == 0);
}

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

/// A strip's rows, image by image: output rows first_row to last_row of one image at a time.
struct Strip {
  int image, first_row, last_row;
  int left;  // rows in later images

  __device__ Strip(int begin, int end) : image(begin / out_height), left(end - begin) {
    take(begin % out_height);
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
    last_row = min(first + left, out_height) - 1;
    left -= last_row - first_row + 1;
  }
};

/// Four rows of four pixels of one channel.
struct Square {
  float4 row[4];

  __device__ __forceinline__ void load(const float* __restrict__ channel, int first_y, bool active) {
#pragma unroll
    for (int dy = 0; dy < 4; ++dy) {
      const int y = first_y + dy;
      const bool inside = active && y >= 0 && y < problem::height;
      row[dy] = inside ? __ldg(reinterpret_cast<const float4*>(channel + y * problem::width))
                       : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
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

/// Multiplies a row of blocks, whose first pixels are at `pixels`, by the rows of taps from first_used to
/// last_used. What a row of taps has summed up goes on with the next one: the block row before was one less.
template <bool all>
__device__ __forceinline__ void multiply_row(Sums& sums, const uint4 (&weights)[k_steps], unsigned pixels,
                                             int first_used, int last_used) {
#pragma unroll
  for (int i = 0; i < row_steps; ++i) {
    const unsigned from = pixels + i % channels * 2 * plane_bytes + i / channels * 16;
    unsigned b[tiles_n][2];
#pragma unroll
    for (int n = 0; n + 1 < tiles_n; n += 2) load_four(b[n], from + n * 8 * 16);
    if (tiles_n % 2 == 1) load_two(b[tiles_n - 1], from + (tiles_n - 1) * 8 * 16);
#pragma unroll
    for (int ty = block_taps - 1; ty >= 0; --ty) {
      if (!all && (ty < first_used || ty > last_used)) continue;
#pragma unroll
      for (int n = 0; n < tiles_n; ++n) {
        const Tile zero = {};
        multiply_add(sums[ty][n], weights[ty * row_steps + i], b[n],
                     i > 0 ? sums[ty][n] : ty > 0 ? sums[ty - 1][n] : zero);
      }
    }
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
    places[i] = (step * step_units + k % 8 / 2) * 8 + k / 8 * 4 + k % 2;
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
    convolve(const float* __restrict__ input, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ output) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned full = shared + offset_bars;
  const unsigned empty = full + ring * 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full + 8 * i, 32);
      bar_init(empty + 8 * i, consumers * 32);
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
    // ---- the producer ----
    // Where a lane's squares come from in an image, and where their units go in a row of blocks. Pixels
    // 4c + 2 and 4c + 3 of a row are the left half of block c + 1, the two before them the right half of
    // block c.
    int from[lane_squares], to[lane_squares];
#pragma unroll
    for (int i = 0; i < lane_squares; ++i) {
      const int square = lane + i * 32;
      const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
      from[i] = channel * image_pixels + 4 * column;
      to[i] = channel * 2 * plane_bytes + column * 16;
      // Kept as it is: the compiler else folds it into pointers, with its sign lost.
      asm volatile("" : "+r"(from[i]), "+r"(to[i]));
    }
    const auto exists = [&](int i) { return lane + i * 32 < row_squares; };
    int slot = 0;
    unsigned parity = 1;
    do {
      const float* const image = input + strip.image * channels * image_pixels;
      const int last_block_row = strip.last_row + block_taps - 1;
#pragma unroll 1
      for (int block_row = strip.first_row; block_row <= last_block_row; block_row += depth) {
        Square squares[depth][lane_squares];
#pragma unroll
        for (int d = 0; d < depth; ++d) {
#pragma unroll
          for (int i = 0; i < lane_squares; ++i) {
            squares[d][i].load(image + from[i], 4 * (block_row + d) - problem::padding,
                               exists(i) && block_row + d <= last_block_row);
          }
        }
#if AHEAD > 0
        // Every 64 bytes of the block rows after the next ones: four lanes have a line of each.
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          const int y = 4 * (block_row + ahead + d) - problem::padding + lane % 4;
#pragma unroll
          for (int i = 0; i < lane_squares; ++i) {
            if (exists(i) && y < problem::height) {
              asm volatile("prefetch.global.L2 [%0];" ::"l"(image + from[i] / 16 * 16 + y * problem::width));
            }
          }
        }
#endif
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          if (block_row + d > last_block_row) break;
          bar_wait(empty + 8 * slot, parity);
          unsigned char* const row = memory + offset_ring + slot * row_bytes;
#pragma unroll
          for (int i = 0; i < lane_squares; ++i) {
            if (!exists(i)) continue;
            *reinterpret_cast<uint4*>(row + to[i] + 16) = squares[d][i].right();
            *reinterpret_cast<uint4*>(row + to[i] + plane_bytes) = squares[d][i].left();
          }
          bar_arrive(full + 8 * slot);
          if (++slot == ring) {
            slot = 0;
            parity ^= 1;
          }
        }
      }
    } while (strip.next_image());
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
  for (int i = 0; i < k_steps; ++i) weights[i] = reinterpret_cast<const uint4*>(own)[i * step_units + lane];
  __syncwarp();
  float* const staged = reinterpret_cast<float*>(own);

  // ldmatrix: eight lanes point to the left halves of eight pixels, eight to their right halves, and so
  // on with the next pixels. The columns beyond the row's end meet whatever comes behind the row and are
  // not stored.
  const unsigned pixels = shared + offset_ring + lane / 8 % 2 * plane_bytes + (lane / 16 * 8 + lane % 8) * 16;

  int slot = 0;
  unsigned parity = 0;
  Sums sums;
  do {
    float* to = output + (strip.image * filters + first_filter) * plane_pixels +
                strip.first_row * out_width + lane;
#pragma unroll 1
    for (int block_row = strip.first_row; block_row <= strip.last_row + block_taps - 1; ++block_row) {
      // An output row of the strip lies under a row of taps.
      const int first_used = max(block_row - strip.last_row, 0);
      const int last_used = min(block_row - strip.first_row, block_taps - 1);
      bar_wait(full + 8 * slot, parity);
      if (last_used - first_used == block_taps - 1) {
        multiply_row<true>(sums, weights, pixels + slot * row_bytes, 0, block_taps - 1);
      } else {
        multiply_row<false>(sums, weights, pixels + slot * row_bytes, first_used, last_used);
      }
      bar_arrive(empty + 8 * slot);
      if (++slot == ring) {
        slot = 0;
        parity ^= 1;
      }
      if (last_used < block_taps - 1) continue;

      // Out through shared memory, so that a warp stores neighbouring pixels of one plane.
      const Finish upper = finishes[lane / 4], lower = finishes[lane / 4 + 8];
#pragma unroll
      for (int n = 0; n < tiles_n; ++n) {
        const Tile& sum = sums[block_taps - 1][n];
        float* const stage = staged + lane / 4 * staged_stride + n * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(stage) = {fmaf(sum[0], upper.scale, upper.bias),
                                             fmaf(sum[1], upper.scale, upper.bias)};
        *reinterpret_cast<float2*>(stage + 8 * staged_stride) = {fmaf(sum[2], lower.scale, lower.bias),
                                                                 fmaf(sum[3], lower.scale, lower.bias)};
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < warp_filters; ++i) {
        const float* const from = staged + i * staged_stride + lane;
        to[i * plane_pixels] = from[0];
        if (lane + 32 < out_width) to[i * plane_pixels + 32] = from[32];
      }
      __syncwarp();
      to += out_width;
    }
  } while (strip.next_image());
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

// A thread an element.
extern "C" __global__ void __launch_bounds__(256)
    convolve_any_size(const float* input, const float* weight, const float* bias, float* output) {
  using namespace problem;
  const long long element = 256ll * blockIdx.x + threadIdx.x;
  if (element >= output_elements) return;
  const int q = static_cast<int>(element % out_width);
  const int p = static_cast<int>(element / out_width % out_height);
  const int f = static_cast<int>(element / (1ll * out_width * out_height) % filters);
  const int n = static_cast<int>(element / (1ll * out_width * out_height * filters));
  float sum = bias[f];
  for (int c = 0; c < in_channels; ++c) {
    for (int r = 0; r < problem::kernel; ++r) {
      const int y = p * stride + r - padding;
      if (y < 0 || y >= height) continue;
      const float* row = input + ((1ll * n * in_channels + c) * height + y) * width;
      const float* taps = weight + ((1ll * f * in_channels + c) * problem::kernel + r) * problem::kernel;
      for (int s = 0; s < problem::kernel; ++s) {
        const int x = q * stride + s - padding;
        if (x >= 0 && x < width) sum += row[x] * taps[s];
      }
    }
  }
  output[element] = sum;
}
