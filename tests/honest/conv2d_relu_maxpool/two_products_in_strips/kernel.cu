// Convolution 11 x 11, stride 4, to nearly FP32's accuracy, as two matrix products of FP16 operands with
// one FP32 sum on wgmma. With s = 1/64, P = half((1 - s) x), X = half(x - P), Q = half(w) and
// Y = half(Q + (w - Q) / s), x w is P Q + X Y but for s times the rounding of one FP16 product. Space to
// depth turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of
// blocks (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only
// another start address in the matrix descriptor, and no pixel is copied more than once.
//
// A multiprocessor has one thread block. Its two consumer warpgroups each compute a contiguous strip of
// pooled rows, one row of the convolution, 55 pixels x 96 filters, a step. A thread has the same pixels
// in every step, so the vertical half of the pooling needs registers alone; the horizontal half, scale,
// bias and ReLU follow on the way out through shared memory. Six producer warps a strip bring the input
// through registers into a ring of block rows. The packed weights stay in shared memory.

#include <cuda_fp16.h>

#include "problem.h"

#ifndef RING
#define RING 5
#endif
#ifndef DEPTH
#define DEPTH 1
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
static_assert(out_width == 2 * problem::pooled_width + 1 && problem::pooled_width < 32 &&
              out_height == 2 * problem::pooled_height + 1);
constexpr int pooled_height = problem::pooled_height;
constexpr int pooled_width = problem::pooled_width;
constexpr int pooled_pixels = pooled_height * pooled_width;
constexpr int rows = problem::batch * pooled_height;

constexpr int k_steps = block_taps * block_taps * channels;
constexpr int products = 2;
constexpr float share = 1.0f / 64.0f;
constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int columns = filters / halves;
constexpr int step_bytes = 2 * columns * 16;  // weights of a step: two chunks of eight taps
constexpr int weight_bytes = products * k_steps * step_bytes;

constexpr int strips = 2;  // of a thread block, one for each consumer warpgroup
constexpr int consumer_threads = strips * 128;
constexpr int loaders = 4;  // producer warps of a strip
constexpr int threads = consumer_threads + strips * loaders * 32;
constexpr int row_squares = channels * (blocks_wide - 1);  // of 4 x 4 pixels in a row of blocks
constexpr int thread_squares = (row_squares + loaders * 32 - 1) / (loaders * 32);

constexpr int ring = RING;
constexpr int depth = DEPTH;  // block rows that a producer requests together
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = products * 2 * channels * plane_bytes;

// Rows of results, pooled vertically, on their way to the horizontal pooling.
constexpr int staged_stride = 60;  // of a filter; spreads a warp's four columns over the banks
static_assert(staged_stride >= out_width + 1 && staged_stride % 2 == 0);

constexpr int offset_weights = 0;
constexpr int offset_ring = offset_weights + weight_bytes;
constexpr int offset_staged = offset_ring + strips * ring * row_bytes;
constexpr int offset_finish = offset_staged + strips * columns * staged_stride * 4;
constexpr int offset_bars = offset_finish + columns * 8;
constexpr int shared_bytes = offset_bars + (2 * strips * ring + 1) * 8;
static_assert(shared_bytes <= 232448 - 1024);

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void bar_wait(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (done == 0);
}

/// Makes this thread's writes to shared memory visible to the matrix unit.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void warpgroup_barrier(int id) {
  asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
}

/// Where the previous kernel of the plan has ended and its results can be read.
__device__ __forceinline__ void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Descriptor of an operand in shared memory without swizzle: `leading` bytes between its two chunks of
/// eight along k, 128 bytes between groups of eight rows.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned leading) {
  return static_cast<unsigned long long>(address >> 4) |
         (static_cast<unsigned long long>(leading >> 4) << 16) | (8ull << 32);
}

using Sums = float[columns / 2];

/// sums (64 pixels x 48 filters) = or, where add is not 0, += a (64 x 16) · b (16 x 48).
__device__ __forceinline__ void multiply(Sums& d, unsigned long long a, unsigned long long b, int add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %26, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23}, "
      "%24, %25, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
        "+f"(d[22]), "+f"(d[23])
      : "l"(a), "l"(b), "r"(add)
      : "memory");
}

/// A strip's pooled rows, image by image: rows first_row to last_row of one image at a time.
struct Strip {
  int image, first_row, last_row;
  int left;  // rows in later images

  __device__ Strip(int begin, int end)
      : image(begin / pooled_height),
        first_row(begin % pooled_height),
        last_row(min(first_row + end - begin, pooled_height) - 1),
        left(end - begin - (last_row - first_row + 1)) {}

  /// Rows of blocks that its rows in this image touch.
  __device__ int first_block_row() const { return 2 * first_row; }
  __device__ int last_block_row() const { return 2 * last_row + 2 + block_taps - 1; }

  __device__ bool next_image() {
    if (left == 0) return false;
    ++image;
    first_row = 0;
    last_row = min(left, pooled_height) - 1;
    left -= last_row + 1;
    return true;
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

  /// What product `p` has of pixels x and y.
  template <int p>
  static __device__ __forceinline__ unsigned pair(float x, float y) {
    __half2 both = __floats2half2_rn((1.0f - share) * x, (1.0f - share) * y);
    if (p == 1) both = __floats2half2_rn(x - __low2float(both), y - __high2float(both));
    return *reinterpret_cast<const unsigned*>(&both);
  }
  template <int p>
  __device__ __forceinline__ uint4 left() const {
    return {pair<p>(row[0].x, row[0].y), pair<p>(row[1].x, row[1].y), pair<p>(row[2].x, row[2].y),
            pair<p>(row[3].x, row[3].y)};
  }
  template <int p>
  __device__ __forceinline__ uint4 right() const {
    return {pair<p>(row[0].z, row[0].w), pair<p>(row[1].z, row[1].w), pair<p>(row[2].z, row[2].w),
            pair<p>(row[3].z, row[3].w)};
  }
};

/// What a sum becomes: scale · sum + bias.
struct Finish {
  float scale;
  float bias;
};

/// A warp pools 24 filters of a row horizontally and writes them out. A lane holds two columns; the
/// third of its window is its neighbour's first. Scaling by a positive number, adding the bias and ReLU
/// keep the order, so they follow the maximum.
__device__ __forceinline__ void write_out(float* __restrict__ output, const float* staged,
                                          const Finish* finish, int image, int row, int first_own, int warp,
                                          int lane) {
  constexpr int per_warp = columns / 4;
  const int first_filter = warp * per_warp;
  float* to =
      output + (image * filters + first_own + first_filter) * pooled_pixels + row * pooled_width + lane;
  const float* from = staged + first_filter * staged_stride + 2 * min(lane, pooled_width);
#pragma unroll 4
  for (int i = 0; i < per_warp; ++i) {
    const Finish f = finish[first_filter + i];
    const float2 columns = *reinterpret_cast<const float2*>(from + i * staged_stride);
    const float right = __shfl_down_sync(0xffffffffu, columns.x, 1);
    const float largest = fmaxf(fmaxf(columns.x, columns.y), right);
    if (lane < pooled_width) to[i * pooled_pixels] = fmaxf(fmaf(largest, f.scale, f.bias), 0.0f);
  }
}

}  // namespace

/// Rewrites the weights as FP16 in the order in which the matrix unit reads them: [half of
/// the filters][product][step][chunk of 8][filter][8], a step being a tap of blocks and a channel. Each
/// filter is scaled by a power of two that puts its largest weight between 1 and 2, so that small weights
/// keep their digits. A thread block does one filter.
extern "C" __global__ void __launch_bounds__(128)
    pack_weight(const float* __restrict__ weight, const float* __restrict__ bias,
                __half* __restrict__ packed, float2* __restrict__ finish) {
  asm volatile("griddepcontrol.launch_dependents;");
  constexpr int kernel_area = problem::kernel * problem::kernel;
  constexpr int filter_weights = channels * kernel_area;
  __shared__ float own[filter_weights];
  __shared__ float warp_largest[4];
  const int filter = blockIdx.x;

  float largest = 0.0f;
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

  for (int i = threadIdx.x; i < k_steps * 16; i += 128) {
    const int step = i / 16, chunk = i / 8 % 2, k = i % 8;
    const int tap = step / channels, channel = step % channels;
    const int ky = tap / block_taps * 4 + k / 2;
    const int kx = tap % block_taps * 4 + chunk * 2 + k % 2;
    const bool inside = ky < problem::kernel && kx < problem::kernel;
    const float value = inside ? own[channel * kernel_area + ky * problem::kernel + kx] * up : 0.0f;
    const __half q = __float2half_rn(value);
    const float rest = value - __half2float(q);
    const __half y = __float2half_rn(__half2float(q) + rest * (1.0f / share));
    const int to =
        filter / columns * (weight_bytes / 2) + ((step * 2 + chunk) * columns + filter % columns) * 8 + k;
    packed[to] = q;
    packed[to + k_steps * step_bytes / 2] = y;
  }
  if (threadIdx.x == 0) finish[filter] = {down, bias[filter]};
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    convolve_pool(const float* __restrict__ input, const __half* packed, const float2* finish,
                  float* __restrict__ output) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned full_bars = shared + offset_bars;
  const unsigned empty_bars = full_bars + strips * ring * 8;
  const unsigned weight_bar = empty_bars + strips * ring * 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < strips * ring; ++i) {
      bar_init(full_bars + 8 * i, loaders);
      bar_init(empty_bars + 8 * i, 4);
    }
    bar_init(weight_bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // The padding: the first unit of the left planes and the last of the right ones, for good.
  if (threadIdx.x < strips * ring * products * channels * 2) {
    const int plane = threadIdx.x;
    const int unit = plane % 2 == 0 ? 0 : blocks_wide - 1;
    *reinterpret_cast<uint4*>(memory + offset_ring + plane * plane_bytes + unit * 16) = {0, 0, 0, 0};
    fence_async();
  }
  __syncthreads();

  const bool producer = threadIdx.x >= consumer_threads;
  const int own = producer ? (warp - consumer_threads / 32) / loaders : warp / 4;
  const int half = blockIdx.x % halves;
  const int strip_index = blockIdx.x / halves * strips + own;
  const int all_strips = gridDim.x / halves * strips;
  if (strip_index >= all_strips) return;  // an odd number of thread blocks
  const int begin = static_cast<int>(1ll * rows * strip_index / all_strips);
  const int end = static_cast<int>(1ll * rows * (strip_index + 1) / all_strips);
  const unsigned full = full_bars + own * ring * 8;
  const unsigned empty = empty_bars + own * ring * 8;

  if (producer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
    const int first_square = threadIdx.x % (loaders * 32);
    Square squares[depth][thread_squares];
    Strip strip(begin, end);
    int block_row = strip.first_block_row();
    bool more = true;
    const auto load_next = [&](Square(&loaded)[thread_squares]) {
      if (!more) return;
#pragma unroll
      for (int i = 0; i < thread_squares; ++i) {
        const int square = first_square + i * loaders * 32;
        const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
        loaded[i].load(input + (strip.image * channels + channel) * image_pixels + 4 * column,
                       4 * block_row - problem::padding, square < row_squares);
      }
      if (++block_row > strip.last_block_row()) {
        more = strip.next_image();
        block_row = 0;
      }
    };
    // Pixels 4c + 2 and 4c + 3 of a row are the left half of block c + 1, the two before them the right
    // half of block c.
    const auto store = [&](const Square(&loaded)[thread_squares], unsigned char* row) {
#pragma unroll
      for (int i = 0; i < thread_squares; ++i) {
        const int square = first_square + i * loaders * 32;
        const int channel = square / (blocks_wide - 1), column = square % (blocks_wide - 1);
        unsigned char* const to = row + channel * 2 * plane_bytes + column * 16;
        if (square < row_squares) {
          constexpr int product_bytes = row_bytes / products;
          *reinterpret_cast<uint4*>(to + 16) = loaded[i].right<0>();
          *reinterpret_cast<uint4*>(to + plane_bytes) = loaded[i].left<0>();
          *reinterpret_cast<uint4*>(to + product_bytes + 16) = loaded[i].right<1>();
          *reinterpret_cast<uint4*>(to + product_bytes + plane_bytes) = loaded[i].left<1>();
        }
      }
    };
    // Block rows of the strip.
    int total = 0;
    {
      Strip counted(begin, end);
      do {
        total += counted.last_block_row() - counted.first_block_row() + 1;
      } while (counted.next_image());
    }
#pragma unroll
    for (int i = 0; i < depth; ++i) load_next(squares[i]);
    int slot = 0;
    unsigned parity = 1;
#pragma unroll 1
    for (int done = 0; done < total; done += depth) {
#pragma unroll
      for (int i = 0; i < depth; ++i) {
        if (done + i < total) {
          bar_wait(empty + 8 * slot, parity);
          store(squares[i], memory + offset_ring + (own * ring + slot) * row_bytes);
          fence_async();
          __syncwarp();
          if (lane == 0) bar_arrive(full + 8 * slot);
          if (++slot == ring) {
            slot = 0;
            parity ^= 1;
          }
        }
      }
      // All loads of a warp share a scoreboard: to wait for one is to wait for all.
#pragma unroll
      for (int i = 0; i < depth; ++i) load_next(squares[i]);
    }
  } else {
    // ---- consumers ----
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
    wait_for_previous_kernel();
    Finish* const finishes = reinterpret_cast<Finish*>(memory + offset_finish);
    if (threadIdx.x < columns) {
      const float2 f = __ldcg(finish + half * columns + threadIdx.x);
      finishes[threadIdx.x] = {f.x, f.y};
    }
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(weight_bar),
                   "r"(weight_bytes)
                   : "memory");
      constexpr int piece = weight_bytes / 9;
#pragma unroll 1
      for (int i = 0; i < 9; ++i) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                shared + offset_weights + i * piece),
            "l"(reinterpret_cast<const unsigned char*>(packed) + half * weight_bytes + i * piece),
            "r"(piece), "r"(weight_bar)
            : "memory");
      }
    }
    asm volatile("bar.sync 1, %0;" ::"n"(consumer_threads) : "memory");
    bar_wait(weight_bar, 0);

    float* const staged = reinterpret_cast<float*>(memory + offset_staged) + own * columns * staged_stride;
    const int quarter = warp % 4;
    const int barrier = 2 + own;
    const unsigned ring_address = shared + offset_ring + own * ring * row_bytes;
    const unsigned long long weights = descriptor(shared + offset_weights, columns * 16);

    int written_image = 0, written_row = -1;  // what is staged and not yet written out
    int slot = 0;
    unsigned parity = 0;
    Strip strip(begin, end);
    Sums sums;
    Sums best = {};  // of the rows of this window so far
    do {
      const int steps = 2 * (strip.last_row - strip.first_row) + 3;
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        int slots[block_taps];
        slots[0] = slot;
#pragma unroll
        for (int i = 1; i < block_taps; ++i) {
          slots[i] = slots[i - 1] + 1 == ring ? 0 : slots[i - 1] + 1;
        }
        bar_wait(full + 8 * slots[2], slots[2] < slot ? parity ^ 1 : parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll  // ptxas serialises products that a loop's end separates
        for (int product = 0; product < products; ++product) {
#pragma unroll
          for (int ty = 0; ty < block_taps; ++ty) {
            const unsigned long long a = descriptor(
                ring_address + slots[ty] * row_bytes + product * (row_bytes / products), plane_bytes);
            const unsigned long long b = weights + product * (k_steps * step_bytes / 16);
#pragma unroll
            for (int i = 0; i < block_taps * channels; ++i) {
              const int tx = i / channels, channel = i % channels;
              const unsigned long long from = a + (channel * 2 * plane_bytes + tx * 16) / 16;
              const unsigned long long with = b + (ty * block_taps * channels + i) * step_bytes / 16;
              multiply(sums, from, with, product + ty + i);
            }
          }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The row before goes out while the matrix unit works.
        if (written_row >= 0) {
          write_out(output, staged, finishes, written_image, written_row, half * columns, quarter, lane);
          written_row = -1;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        const bool last = step == steps - 1;
        if (lane == 0) {
          bar_arrive(empty + 8 * slots[0]);
          if (last) {
            bar_arrive(empty + 8 * slots[1]);
            bar_arrive(empty + 8 * slots[2]);
          }
        }
        slot += last ? block_taps : 1;
        if (slot >= ring) {
          slot -= ring;
          parity ^= 1;
        }

#pragma unroll
        for (int i = 0; i < columns / 2; ++i) best[i] = fmaxf(best[i], sums[i]);
        if (step % 2 == 1) continue;
        if (step > 0) {
          warpgroup_barrier(barrier);  // the row before has been read
#pragma unroll
          for (int eight = 0; eight < 2; ++eight) {
            const int pixel = quarter * 16 + eight * 8 + lane / 4;
            float* const to = staged + lane % 4 * 2 * staged_stride + pixel;
            if (pixel < out_width) {
#pragma unroll
              for (int j = 0; j < columns / 8; ++j) {
                const int i = 4 * j + 2 * eight;
                to[8 * j * staged_stride] = best[i];
                to[(8 * j + 1) * staged_stride] = best[i + 1];
              }
            }
          }
          written_image = strip.image;
          written_row = strip.first_row + step / 2 - 1;
          warpgroup_barrier(barrier);
        }
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) best[i] = sums[i];
      }
    } while (strip.next_image());
    write_out(output, staged, finishes, written_image, written_row, half * columns, quarter, lane);
  }
}
