// Convolution 11 x 11, stride 4, as a matrix product of FP16 operands with FP32 sums. Space to depth
// turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of blocks
// (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only another
// address for ldmatrix, and no pixel is copied more than once.
//
// A thread block computes half of the filters for two contiguous strips of pooled rows; two blocks share
// a multiprocessor. Two consumer warps work on a strip, each on its own columns, one row of the
// convolution a step: 32 pixels x 48 filters. A thread has the same pixels in every step, so the vertical
// half of the pooling needs registers alone; the horizontal half, scale, bias and ReLU follow on the way
// out through shared memory. A producer warp a strip brings the input through registers into a ring of
// block rows. The weights are packed once by each thread block and stay in shared memory.

#include <cuda_fp16.h>

#include "problem.h"

#ifndef RING
#define RING 4
#endif

namespace {

static_assert(problem::kernel == 11 && problem::stride == 4 && problem::padding == 2);
static_assert(problem::width == problem::height && problem::width % 8 == 0 && problem::in_channels == 3 &&
              problem::filters == 96);
constexpr int channels = problem::in_channels;
constexpr int filters = problem::filters;
constexpr int out_width = problem::out_width;
constexpr int out_height = problem::out_height;
constexpr int block_taps = 3;  // blocks that a filter spans, in y and in x
constexpr int blocks_wide = out_width + block_taps - 1;
static_assert(blocks_wide == problem::width / 4 + 1, "half a block of padding on either side");
constexpr int image_pixels = problem::height * problem::width;
static_assert(problem::pool_kernel == 3 && problem::pool_stride == 2);
static_assert(out_width == 2 * problem::pooled_width + 1 && problem::pooled_width == 27 &&
              out_height == 2 * problem::pooled_height + 1);
constexpr int pooled_height = problem::pooled_height;
constexpr int pooled_width = problem::pooled_width;
constexpr int pooled_pixels = pooled_height * pooled_width;
constexpr int rows = problem::batch * pooled_height;
static_assert(problem::batch * filters * pooled_pixels < (1 << 30), "offsets fit an int");

constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int own_filters = filters / halves;
constexpr int filter_pairs = own_filters / 16;  // pairs of 8-wide matrix tiles
constexpr int k_steps = block_taps * block_taps * channels;
constexpr int kernel_area = problem::kernel * problem::kernel;
constexpr int filter_weights = channels * kernel_area;
constexpr int step_vectors = filter_pairs * 32;  // uint4 of weights: a lane's registers for 16 filters
constexpr int weight_bytes = k_steps * step_vectors * 16;

constexpr int strips = 2;  // of a thread block
constexpr int sides = 2;   // of a strip, a consumer warp each
constexpr int consumers = strips * sides;
constexpr int threads = (consumers + strips) * 32;
constexpr int side_columns = 15;  // pooled columns of the left side; the right one has the rest
constexpr int side_pixels = 32;
static_assert(2 * side_columns + 1 <= side_pixels && out_width - 2 * side_columns <= side_pixels);
constexpr int row_squares = channels * (blocks_wide - 1);  // of 4 x 4 pixels in a row of blocks
constexpr int lane_squares = (row_squares + 31) / 32;

constexpr int ring = RING;
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = 2 * channels * plane_bytes;

// 16 filters of a warp's row, pooled vertically, on their way to the horizontal pooling.
constexpr int staged_filters = 16;
constexpr int staged_stride = side_pixels + 4;  // spreads a warp's four columns over the banks
constexpr int tiles_m = side_pixels / 16;

constexpr int offset_ring = 0;
constexpr int offset_weights = offset_ring + strips * ring * row_bytes;
constexpr int offset_staged = offset_weights + weight_bytes;
constexpr int offset_finish = offset_staged + consumers * staged_filters * staged_stride * 4;
constexpr int offset_bars = offset_finish + own_filters * 8;
constexpr int shared_bytes = offset_bars + 2 * strips * ring * 8;
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

/// Four 8 x 8 matrices of halves; lanes 8i to 8i + 7 give the row addresses of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

/// d (16 x 8, FP32) += a (16 x 16, FP16) · b (16 x 8, FP16).
__device__ __forceinline__ void multiply_accumulate(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A strip's pooled rows, image by image: rows first_row to last_row of one image at a time.
struct Strip {
  int image, first_row, last_row;
  int left;  // rows in later images

  __device__ Strip(int begin, int end) : image(begin / pooled_height), left(end - begin) {
    take(begin % pooled_height);
  }

  /// Rows of the convolution that its rows in this image need; as many rows of blocks and two more.
  __device__ int steps() const { return 2 * (last_row - first_row) + problem::pool_kernel; }

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

/// What a sum becomes: scale · sum + bias.
struct Finish {
  float scale;
  float bias;
};

/// Rewrites a quarter of the block's weights as FP16, in the order in which the lanes of a warp hold them
/// for the matrix unit: [step][16 filters][lane][8], a step being a tap of blocks and a channel. Each
/// filter is scaled by a power of two that puts its largest weight between 1 and 2, so that small weights
/// keep their digits.
__device__ __forceinline__ void pack_weights(__half* packed, Finish* finishes,
                                             const float* __restrict__ weight,
                                             const float* __restrict__ bias, int first_filter, int warp,
                                             int lane) {
  constexpr int warp_filters = own_filters / consumers;
  constexpr int values = (filter_weights + 31) / 32;  // of a filter in a lane
  constexpr int batch = 4;                            // filters at a time
  static_assert(warp_filters % batch == 0);
  int places[values];
#pragma unroll
  for (int i = 0; i < values; ++i) {
    const int index = lane + 32 * i;
    const int channel = index / kernel_area, ky = index % kernel_area / problem::kernel,
              kx = index % problem::kernel;
    const int step = (ky / 4 * block_taps + kx / 4) * channels + channel;
    const int k = kx / 2 % 2 * 8 + ky % 4 * 2 + kx % 2;
    // B of m16n8k16: lane 4n + (k mod 8) / 2 holds column n; rows k and k + 1 in one register, rows
    // k + 8 and k + 9 in the next.
    places[i] = (step * step_vectors + k % 8 / 2) * 8 + k / 8 * 2 + k % 2;
  }
#pragma unroll 1
  for (int first = 0; first < warp_filters; first += batch) {
    float loaded[batch][values];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const int filter = first_filter + warp * warp_filters + first + j;
#pragma unroll
      for (int i = 0; i < values; ++i) {
        const int index = lane + 32 * i;
        loaded[j][i] = index < filter_weights ? __ldg(weight + filter * filter_weights + index) : 0.0f;
      }
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const int filter = warp * warp_filters + first + j;
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
      __half* const to = packed + (filter / 16 * 32 + filter % 8 * 4) * 8 + filter / 8 % 2 * 4;
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
  const unsigned full_bars = shared + offset_bars;
  const unsigned empty_bars = full_bars + strips * ring * 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < strips * ring; ++i) {
      bar_init(full_bars + 8 * i, 1);
      bar_init(empty_bars + 8 * i, sides);
    }
  }
  // The padding: the first unit of the left planes and the last of the right ones, for good. Weights
  // that no filter has, for taps outside the 11 x 11, are zero.
  for (int plane = threadIdx.x; plane < strips * ring * channels * 2; plane += threads) {
    const int unit = plane % 2 == 0 ? 0 : blocks_wide - 1;
    *reinterpret_cast<uint4*>(memory + offset_ring + plane * plane_bytes + unit * 16) = {0, 0, 0, 0};
  }
  for (int i = threadIdx.x; i < weight_bytes / 16; i += threads) {
    reinterpret_cast<uint4*>(memory + offset_weights)[i] = {0, 0, 0, 0};
  }
  __syncthreads();

  const bool producer = warp >= consumers;
  const int own = producer ? warp - consumers : warp / sides;
  const int half = blockIdx.x % halves;
  const int strip_index = blockIdx.x / halves * strips + own;
  const int all_strips = (gridDim.x + halves - 1) / halves * strips;
  const int begin = static_cast<int>(1ll * rows * strip_index / all_strips);
  const int end = static_cast<int>(1ll * rows * (strip_index + 1) / all_strips);
  const unsigned full = full_bars + own * ring * 8;
  const unsigned empty = empty_bars + own * ring * 8;

  if (producer) {
    if (begin == end) return;
    Square squares[lane_squares];
    Strip strip(begin, end);
    int block_row = 2 * strip.first_row;
    int left = strip.steps() + block_taps - 1;  // block rows of this image
    const auto load_row = [&]() {
#pragma unroll
      for (int i = 0; i < lane_squares; ++i) {
        const int square = lane + i * 32;
        const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
        squares[i].load(input + (strip.image * channels + channel) * image_pixels + 4 * column,
                        4 * block_row - problem::padding, square < row_squares);
      }
    };
    // Pixels 4c + 2 and 4c + 3 of a row are the left half of block c + 1, the two before them the right
    // half of block c.
    const auto store_row = [&](unsigned char* row) {
#pragma unroll
      for (int i = 0; i < lane_squares; ++i) {
        const int square = lane + i * 32;
        const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
        unsigned char* const to = row + channel * 2 * plane_bytes + column * 16;
        if (square < row_squares) {
          *reinterpret_cast<uint4*>(to + 16) = squares[i].right();
          *reinterpret_cast<uint4*>(to + plane_bytes) = squares[i].left();
        }
      }
    };
    load_row();
    int slot = 0;
    unsigned parity = 1;
    bool more = true;
#pragma unroll 1
    while (more) {
      bar_wait(empty + 8 * slot, parity);
      store_row(memory + offset_ring + (own * ring + slot) * row_bytes);
      __syncwarp();
      if (lane == 0) bar_arrive(full + 8 * slot);
      if (++slot == ring) {
        slot = 0;
        parity ^= 1;
      }
      ++block_row;
      if (--left == 0) {
        more = strip.next_image();
        block_row = 0;
        left = strip.steps() + block_taps - 1;
      }
      if (more) load_row();
    }
    return;
  }

  // ---- consumers ----
  Finish* const finishes = reinterpret_cast<Finish*>(memory + offset_finish);
  pack_weights(reinterpret_cast<__half*>(memory + offset_weights), finishes, weight, bias,
               half * own_filters, warp, lane);
  asm volatile("bar.sync 1, %0;" ::"n"(consumers * 32) : "memory");
  const uint4* const weights = reinterpret_cast<const uint4*>(memory + offset_weights) + lane;
  float* const staged =
      reinterpret_cast<float*>(memory + offset_staged) + warp * staged_filters * staged_stride;

  if (begin == end) return;

  // ldmatrix: lanes 0 to 15 point to the left halves of 16 pixels, lanes 16 to 31 to the right ones.
  // Lanes beyond the row's pixels repeat its last one.
  const int side = warp % sides;
  unsigned pixels[tiles_m];
#pragma unroll
  for (int m = 0; m < tiles_m; ++m) {
    const int pixel = min(side * 2 * side_columns + m * 16 + lane % 16, out_width - 1);
    pixels[m] = shared + offset_ring + own * ring * row_bytes + lane / 16 * plane_bytes + pixel * 16;
  }
  const int column = lane % 16;
  const bool storing = column < (side == 0 ? side_columns : pooled_width - side_columns);
  float* const out = output + half * own_filters * pooled_pixels + side * side_columns + column;

  const auto release = [&](int slot) {
    if (lane == 0) bar_arrive(empty + 8 * slot);
  };
  int slot = 0;
  unsigned parity = 0;
  Strip strip(begin, end);
  float best[tiles_m][own_filters / 8][4] = {};  // of the rows of this window so far
  do {
    const int steps = strip.steps();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      int slots[block_taps];
      slots[0] = slot;
#pragma unroll
      for (int i = 1; i < block_taps; ++i) {
        slots[i] = slots[i - 1] + 1 == ring ? 0 : slots[i - 1] + 1;
      }
      bar_wait(full + 8 * slots[2], slots[2] < slot ? parity ^ 1 : parity);
      float sums[tiles_m][own_filters / 8][4] = {};
#pragma unroll
      for (int ty = 0; ty < block_taps; ++ty) {
        const unsigned row = slots[ty] * row_bytes;
        const uint4* const with = weights + ty * (block_taps * channels * step_vectors);
#pragma unroll
        for (int i = 0; i < block_taps * channels; ++i) {
          const int tx = i / channels, channel = i % channels;
          unsigned a[tiles_m][4];
#pragma unroll
          for (int m = 0; m < tiles_m; ++m) {
            load_matrices(a[m], pixels[m] + row + channel * 2 * plane_bytes + tx * 16);
          }
#pragma unroll
          for (int pair = 0; pair < filter_pairs; ++pair) {
            const uint4 b = with[i * step_vectors + pair * 32];
#pragma unroll
            for (int m = 0; m < tiles_m; ++m) {
              multiply_accumulate(sums[m][2 * pair], a[m], b.x, b.y);
              multiply_accumulate(sums[m][2 * pair + 1], a[m], b.z, b.w);
            }
          }
        }
      }
      const bool last = step == steps - 1;
      __syncwarp();
      release(slots[0]);
      if (last) {
        release(slots[1]);
        release(slots[2]);
      }
      slot += last ? block_taps : 1;
      if (slot >= ring) {
        slot -= ring;
        parity ^= 1;
      }

#pragma unroll
      for (int m = 0; m < tiles_m; ++m) {
#pragma unroll
        for (int n = 0; n < own_filters / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) best[m][n][i] = fmaxf(best[m][n][i], sums[m][n][i]);
        }
      }
      if (step % 2 == 1) continue;
      if (step > 0) {
        // Two filters at a time, 16 lanes each. A lane holds two columns; the third of its window is its
        // neighbour's first. Scaling by a positive number, adding the bias and ReLU keep the order, so
        // they follow the maximum.
        float* const to = out + strip.image * filters * pooled_pixels +
                          (strip.first_row + step / 2 - 1) * pooled_width + lane / 16 * pooled_pixels;
#pragma unroll
        for (int part = 0; part < filter_pairs; ++part) {
#pragma unroll
          for (int m = 0; m < tiles_m; ++m) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
              const int filter = i / 4 * 8 + lane % 4 * 2 + i % 2;
              const int pixel = m * 16 + lane / 4 + i / 2 % 2 * 8;
              staged[filter * staged_stride + pixel] = best[m][2 * part + i / 4][i % 4];
            }
          }
          __syncwarp();
#pragma unroll
          for (int i = 0; i < staged_filters; i += 2) {
            const int filter = part * staged_filters + i;
            const Finish f = finishes[filter + lane / 16];
            const float2 columns =
                *reinterpret_cast<const float2*>(staged + (i + lane / 16) * staged_stride + 2 * column);
            const float right = __shfl_down_sync(0xffffffffu, columns.x, 1);
            const float largest = fmaxf(fmaxf(columns.x, columns.y), right);
            if (storing) to[filter * pooled_pixels] = fmaxf(fmaf(largest, f.scale, f.bias), 0.0f);
          }
          __syncwarp();
        }
      }
#pragma unroll
      for (int m = 0; m < tiles_m; ++m) {
#pragma unroll
        for (int n = 0; n < own_filters / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) best[m][n][i] = sums[m][n][i];
        }
      }
    }
  } while (strip.next_image());
}
