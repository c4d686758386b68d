// Convolution 11 x 11, stride 4, to nearly FP32's accuracy, as two matrix products of FP16 operands with
// one FP32 sum on wgmma. With s = 1/64, P = half((1 - s) x), X = half(x - P), Q = half(w) and
// Y = half(Q + (w - Q) / s), x w is P Q + X Y but for s times the rounding of one FP16 product. Space to
// depth turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory a row of
// blocks (4 x 4 pixels) is six planes of 16-byte units, eight halves each, so a filter tap is only
// another start address in the matrix descriptor, and no pixel is copied more than once.
//
// A multiprocessor has one thread block, which computes half of the filters for a contiguous strip of
// groups of four output rows of an image. Two consumer warpgroups take alternate rows, 55 pixels x 48
// filters each. Six producer warps bring the input through registers into a ring of block rows. The packed
// weights stay in shared memory. Four planes are a multiple of 16 bytes, and so are four rows: finished
// groups leave as two bulk tensor copies, one for each residue of the filter by four, whose boxes begin at
// the group's first multiple of 16 bytes and end where a plane ends. The pixels before and behind a box
// leave as ordinary stores.

#include <cuda_fp16.h>

#include "problem.h"

#ifndef RING
#define RING 8
#endif
#ifndef DEPTH
#define DEPTH 3
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
constexpr int plane_pixels = out_height * out_width;
constexpr int group_rows = 4;
constexpr int image_groups = (out_height + group_rows - 1) / group_rows;
constexpr int groups = problem::batch * image_groups;

constexpr int k_steps = block_taps * block_taps * channels;
constexpr int products = 2;
constexpr float share = 1.0f / 64.0f;
constexpr int halves = 2;  // of the filters, one for a thread block
constexpr int columns = filters / halves;
constexpr int step_bytes = 2 * columns * 16;  // weights of a step: two chunks of eight taps
constexpr int weight_bytes = products * k_steps * step_bytes;

constexpr int consumers = 2;  // warpgroups
constexpr int consumer_warps = consumers * 4;
constexpr int loaders = 2 * channels;  // warps
constexpr int store_warp = consumer_warps + loaders;
constexpr int threads = (store_warp + 2) * 32;
constexpr int lanes_loading = blocks_wide / 2;  // of a producer warp: half a row

constexpr int ring = RING;
constexpr int depth = DEPTH;  // block rows that a producer requests together
constexpr int plane_bytes = blocks_wide * 16;
constexpr int row_bytes = products * 2 * channels * plane_bytes;

// A group of results on its way out: [filter mod 2][filter div 4][pixel of the box].
constexpr int residues = 4;
constexpr int own_residues = residues / halves;  // of a thread block
constexpr int group_pixels = group_rows * out_width;
constexpr int box_pixels = group_pixels - 4;
constexpr int residue_pixels = filters / residues * box_pixels;
static_assert(group_pixels % 4 == 0 && plane_pixels % 4 == 1 && residue_pixels * 4 % 128 == 0);

/// Pixels of a group in front of its box.
__host__ __device__ constexpr int before_box(int residue) { return (4 - residue) % 4; }

/// Pixels of a group's box; the copy engine clips the last one at the plane's last multiple of 16 bytes.
__device__ __forceinline__ int box_end(int residue, bool last_of_image) {
  constexpr int rest = plane_pixels - (image_groups - 1) * group_pixels;
  return last_of_image ? (rest - before_box(residue)) / 4 * 4 : box_pixels;
}

constexpr int offset_staged = 0;
constexpr int offset_weights = offset_staged + own_residues * residue_pixels * 4;
constexpr int offset_ring = offset_weights + weight_bytes;
constexpr int offset_bars = offset_ring + ring * row_bytes;
// 64 pixels are read of a row of 55; compute-sanitizer takes both planes for one piece of 2048 bytes.
constexpr int margin = 104;
constexpr int shared_bytes = offset_bars + (2 * ring + 3) * 8 + margin;
static_assert(shared_bytes <= 232448 - 1024);

/// What the copy engine knows of a tensor.
struct __align__(64) TensorMap {
  unsigned char bytes[128];
};

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

/// A strip's rows, image by image: output rows first_row to last_row of one image at a time.
struct Strip {
  int image, first_row, last_row;
  int left;  // groups in later images

  __device__ Strip(int begin, int end) : image(begin / image_groups), left(end - begin) {
    take(begin % image_groups);
  }

  __device__ bool next_image() {
    if (left == 0) return false;
    ++image;
    take(0);
    return true;
  }

 private:
  __device__ void take(int first_group) {
    const int count = min(left, image_groups - first_group);
    first_row = first_group * group_rows;
    last_row = min(first_row + count * group_rows, out_height) - 1;
    left -= count;
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

/// The matrix unit's column of a filter in its half. A thread has columns 8j + 2q and 8j + 2q + 1 of all
/// j, q being its place among four lanes: both residues of quad 4j + q.
__device__ __forceinline__ int column_of(int filter) {
  const int residue = filter % own_residues, quad = filter / residues;
  return quad / 4 * 8 + quad % 4 * 2 + residue;
}

__device__ __forceinline__ int half_of(int filter) { return filter % residues / own_residues; }

__device__ __forceinline__ void store_box(const TensorMap& map, int x, int y, unsigned from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(x), "r"(y), "r"(from)
               : "memory");
}

}  // namespace

/// Rewrites the weights as FP16 in the order in which the matrix unit reads them: [half of
/// the filters][product][step][chunk of 8][column][8], a step being a tap of blocks and a channel. Each
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
  const int column = column_of(filter);
  const int half = half_of(filter);

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
    const int to = half * weight_bytes / 2 + ((step * 2 + chunk) * columns + column) * 8 + k;
    packed[to] = q;
    packed[to + k_steps * step_bytes / 2] = y;
  }
  if (threadIdx.x == 0) finish[half * columns + column] = {down, bias[filter]};
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    convolve(const float* __restrict__ input, const __half* packed, const float2* finish,
             const __grid_constant__ TensorMap planes0, const __grid_constant__ TensorMap planes1,
             const __grid_constant__ TensorMap planes2, const __grid_constant__ TensorMap planes3,
             float* __restrict__ output) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned full = shared + offset_bars;
  const unsigned empty = full + ring * 8;
  const unsigned weight_bar = empty + ring * 8;
  const unsigned staged_bar = weight_bar + 8;
  const unsigned free_bar = staged_bar + 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full + 8 * i, loaders);
      bar_init(empty + 8 * i, consumer_warps);
    }
    bar_init(weight_bar, 1);
    bar_init(staged_bar, consumer_warps);
    bar_init(free_bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // The padding: the first unit of the left planes and the last of the right ones, for good.
  if (threadIdx.x < ring * products * channels * 2) {
    const int plane = threadIdx.x;
    const int unit = plane % 2 == 0 ? 0 : blocks_wide - 1;
    *reinterpret_cast<uint4*>(memory + offset_ring + plane * plane_bytes + unit * 16) = {0, 0, 0, 0};
    fence_async();
  }
  __syncthreads();

  const int half = blockIdx.x % halves;
  const int strip_index = blockIdx.x / halves, strips = gridDim.x / halves;
  const int begin = static_cast<int>(1ll * groups * strip_index / strips);
  const int end = min(static_cast<int>(1ll * groups * (strip_index + 1) / strips), groups);
  if (begin == end) return;

  if (warp >= consumer_warps) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    if (warp < store_warp) {
      const int loader = warp - consumer_warps;
      const int channel = loader / 2;
      const int column = loader % 2 * lanes_loading + lane;
      const bool active = lane < lanes_loading;
      // Pixels 4c + 2 and 4c + 3 of a row are the left half of block c + 1, the two before them the right
      // half of block c.
      unsigned char* const to = memory + offset_ring + channel * 2 * plane_bytes + (column + 1) * 16;
      Square squares[depth];
      Strip strip(begin, end);
      int block_row = strip.first_row;
      bool more = true;
      const auto load_next = [&](Square& square) {
        if (!more) return;
        square.load(input + (strip.image * channels + channel) * image_pixels + 4 * column,
                    4 * block_row - problem::padding, active);
        if (++block_row > strip.last_row + block_taps - 1) {
          more = strip.next_image();
          block_row = 0;
        }
      };
      // Block rows of the strip.
      int total = 0;
      {
        Strip counted(begin, end);
        do {
          total += counted.last_row - counted.first_row + block_taps;
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
            if (active) {
              unsigned char* const unit = to + slot * row_bytes;
              constexpr int product_bytes = row_bytes / products;
              *reinterpret_cast<uint4*>(unit) = squares[i].right<0>();
              *reinterpret_cast<uint4*>(unit + plane_bytes - 16) = squares[i].left<0>();
              *reinterpret_cast<uint4*>(unit + product_bytes) = squares[i].right<1>();
              *reinterpret_cast<uint4*>(unit + product_bytes + plane_bytes - 16) = squares[i].left<1>();
            }
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
    } else if (warp == store_warp && lane == 0) {
      unsigned parity = 0;
#pragma unroll 1
      for (int group = begin; group < end; ++group) {
        const int image = group / image_groups;
        const int pixel = group % image_groups * group_pixels;
        bar_wait(staged_bar, parity);
        parity ^= 1;
        const unsigned from = shared + offset_staged;
        const int y = image * (filters / residues);
        if (half == 0) {
          store_box(planes0, pixel + before_box(0), y, from);
          store_box(planes1, pixel + plane_pixels + before_box(1), y, from + residue_pixels * 4);
        } else {
          store_box(planes2, pixel + 2 * plane_pixels + before_box(2), y, from);
          store_box(planes3, pixel + 3 * plane_pixels + before_box(3), y, from + residue_pixels * 4);
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        bar_arrive(free_bar);
      }
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
    wait_for_previous_kernel();
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
    const int place = lane % 4;
    float scale[columns / 4];
    float bias[columns / 4];
#pragma unroll
    for (int i = 0; i < columns / 4; ++i) {
      const float2 f = __ldcg(finish + half * columns + i / 2 * 8 + place * 2 + i % 2);
      scale[i] = f.x;
      bias[i] = f.y;
    }
    bar_wait(weight_bar, 0);

    const int consumer = warp / 4;
    const int quarter = warp % 4;
    const unsigned ring_address = shared + offset_ring;
    const unsigned long long weights = descriptor(shared + offset_weights, columns * 16);
    const int first_pixel = quarter * 16 + lane / 4;
    float* const staged =
        reinterpret_cast<float*>(memory + offset_staged) + place * box_pixels + first_pixel;

    int base = 0;      // place of the image's first block row in the ring's order
    int released = 0;  // block rows that this warp needs no more
    int turn = 0;      // the consumer that takes the next row
    unsigned free_parity = 1;
    bool waited = false;  // for the staging to be free for this group
    const auto release = [&](int until) {
#pragma unroll 1
      for (; released < until; ++released) {
        if (lane == 0) bar_arrive(empty + 8 * (released % ring));
      }
    };
    Strip strip(begin, end);
    Sums sums;
    do {
#pragma unroll 1
      for (int row = strip.first_row; row <= strip.last_row; ++row, turn ^= 1) {
        if (turn != consumer) continue;
        const int block_row = base + row - strip.first_row;
        bar_wait(full + 8 * ((block_row + 2) % ring), (block_row + 2) / ring & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll  // ptxas serialises products that a loop's end separates
        for (int product = 0; product < products; ++product) {
#pragma unroll
          for (int ty = 0; ty < block_taps; ++ty) {
            const unsigned long long a = descriptor(
                ring_address + (block_row + ty) % ring * row_bytes + product * (row_bytes / products),
                plane_bytes);
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
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        release(min(block_row + 2, base + strip.last_row - strip.first_row + 1));

        if (!waited) {
          bar_wait(free_bar, free_parity);
          free_parity ^= 1;
          waited = true;
        }
        const int group_row = row % group_rows;
        float* const to = staged + group_row * out_width;
        const bool image_end = row == out_height - 1;
        if ((quarter == 0 && group_row == 0) ||
            (quarter == 3 && (group_row == group_rows - 1 || image_end))) {
          // Here are pixels in front of the boxes or behind them.
          float* const plane =
              output + (strip.image * filters + place * residues) * plane_pixels + row * out_width;
#pragma unroll
          for (int i = 0; i < columns / 4; ++i) {
            const int residue = half * own_residues + i % own_residues, quad = i / own_residues * 4;
            const float value = fmaf(sums[i / 2 * 4 + i % 2], scale[i], bias[i]);
            const int at = group_row * out_width + first_pixel - before_box(residue);
            if (first_pixel < out_width) {
              if (at >= 0 && at < box_end(residue, image_end)) {
                to[i % own_residues * residue_pixels + quad * box_pixels - before_box(residue)] = value;
              } else {
                plane[(quad * residues + residue) * plane_pixels + first_pixel] = value;
              }
            }
          }
        } else {
          if (first_pixel < out_width) {
#pragma unroll
            for (int i = 0; i < columns / 4; ++i) {
              const int residue = half * own_residues + i % own_residues, quad = i / own_residues * 4;
              to[i % own_residues * residue_pixels + quad * box_pixels - before_box(residue)] =
                  fmaf(sums[i / 2 * 4 + i % 2], scale[i], bias[i]);
            }
          }
        }
        if (first_pixel + 8 < out_width) {
#pragma unroll
          for (int i = 0; i < columns / 4; ++i) {
            const int residue = half * own_residues + i % own_residues, quad = i / own_residues * 4;
            to[i % own_residues * residue_pixels + quad * box_pixels - before_box(residue) + 8] =
                fmaf(sums[i / 2 * 4 + 2 + i % 2], scale[i], bias[i]);
          }
        }
        // This warp's last row of the group?
        const int last_of_group = min(row | (group_rows - 1), strip.last_row);
        if (row + 2 > last_of_group) {
          fence_async();
          __syncwarp();
          if (lane == 0) bar_arrive(staged_bar);
          waited = false;
        }
      }
      base += strip.last_row - strip.first_row + block_taps;
      release(base);
    } while (strip.next_image());
  }
}
