// Convolution 11 x 11, stride 4, ReLU and max-pooling, to nearly FP32's accuracy, as two matrix products of
// FP16 operands with one FP32 sum on wgmma. With s = 1/64, P = half((1 - s) x), X = half(x - P),
// Q = half(w) and Y = half(Q + (w - Q) / s), x w is P Q + X Y but for s times the rounding of one FP16
// product. Space to depth turns it into a 3 x 3 convolution with stride 1 over 48 channels. In shared memory
// a row of blocks (4 x 4 pixels) is six planes of P and six of X in 16-byte units, eight halves each, so a
// filter tap is only another start address in the matrix descriptor, and no pixel is copied more than once.
//
// Filters are the product's rows, pixels its columns. Q stays in the registers of two warpgroups, Y in
// shared memory. 96 filters are one and a half times the 64 rows of an instruction: the first warpgroup has
// 64 filters and takes row after row; the second has the other 32 twice, for two neighbouring rows, which
// takes four rows of blocks instead of three.
//
// A multiprocessor has one thread block and computes a contiguous strip of pooled rows. A thread has the
// same pixels, neighbours two by two, of every row of its filters: it pools in registers, with one shuffle
// a window. One warp has the copy engine bring rows of the input, three convert them to FP16 blocks in a
// ring, and four write results out. Those lie in a ring for each filter, at their place in the output
// modulo the ring's size, and leave as whole lines; what does not fill a line waits for the next rows.

#include <cuda_fp16.h>

#include "problem.h"

#ifndef RING
#define RING 6
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
constexpr int blocks_high = out_height + block_taps - 1;
constexpr int image_pixels = problem::height * problem::width;
static_assert(problem::pool_kernel == 3 && problem::pool_stride == 2);
static_assert(out_width == 2 * problem::pooled_width + 1 && problem::pooled_width == 27 &&
              out_height == 2 * problem::pooled_height + 1);
constexpr int pooled_height = problem::pooled_height;
constexpr int pooled_width = problem::pooled_width;
constexpr int pooled_pixels = pooled_height * pooled_width;
constexpr int rows = problem::batch * pooled_height;
static_assert(problem::batch * filters * pooled_pixels < (1 << 30), "offsets fit an int");

// Steps of 16 along the product's depth, and the rows of the matrix unit: 16 for a warp, in two halves.
constexpr int row_steps = block_taps * channels;  // with one row of blocks
constexpr int single_steps = block_taps * row_steps;
constexpr int paired_steps = (block_taps + 1) * row_steps;
constexpr int single_filters = 64;

constexpr int products = 2;
constexpr float share = 1.0f / 64.0f;

// Packed weights: Q as threads hold it, then Y as the matrix unit reads it, a step being two chunks of eight
// along k for 64 rows.
constexpr int q_bytes = single_steps * 4 * 32 * (16 + 8);
constexpr int step_rows = 64;
constexpr int step_bytes = 2 * step_rows * 16;
constexpr int single_y_bytes = single_steps * step_bytes;
constexpr int paired_y_bytes = paired_steps * step_bytes;
constexpr int y_bytes = single_y_bytes + paired_y_bytes;
constexpr int columns = (out_width + 7) / 8 * 8;

constexpr int consumer_warps = 8;
constexpr int converters = channels;  // warps
constexpr int first_converter = consumer_warps;
constexpr int load_warp = first_converter + converters;
constexpr int first_writer = load_warp + 1;
constexpr int writers = 4;  // warps
constexpr int threads = (first_writer + writers) * 32;
static_assert(first_writer % 4 == 0, "the others are whole warpgroups");

constexpr int ring = RING;  // rows of blocks
constexpr int plane_bytes = blocks_wide * 16;
constexpr int product_bytes = 2 * channels * plane_bytes;
constexpr int row_bytes = products * product_bytes;
constexpr int raw_line = problem::width * 4;
constexpr int raw_channel = 4 * raw_line;
constexpr int raw_bytes = channels * raw_channel;  // one row of blocks as FP32 pixels
constexpr int ahead = 4;                           // rows of blocks that L2 is asked for early
constexpr int staged_pixels = 64;  // of a filter
constexpr int stages = 1;          // pooled rows in it, besides what waits for a line
static_assert(staged_pixels >= 31 + stages * pooled_width);

constexpr int offset_staged = 0;
constexpr int offset_y = offset_staged + filters * staged_pixels * 4;
constexpr int offset_ring = offset_y + y_bytes;
constexpr int offset_raw = offset_ring + ring * row_bytes;
constexpr int offset_bars = offset_raw + raw_bytes;
constexpr int shared_bytes = offset_bars + (2 * ring + 2 * channels + 2 * stages + 1) * 8;
static_assert(offset_y % 128 == 0 && offset_raw % 16 == 0 && shared_bytes <= 232448 - 1024);

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

/// Every lane arrives for what it has read or written itself.
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

__device__ __forceinline__ void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(bar)
      : "memory");
}

/// Has L2 bring what is loaded soon.
__device__ __forceinline__ void bulk_prefetch(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
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
/// eight along k, 128 bytes between groups of eight pixels or filters.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned leading) {
  return static_cast<unsigned long long>(address >> 4) |
         (static_cast<unsigned long long>(leading >> 4) << 16) | (8ull << 32);
}

using Sums = float[columns / 2];
static_assert(columns == 56);

/// sums (64 x 56) = a (64 x 16) · b (16 x 56).
__device__ __forceinline__ void multiply_first(Sums& d, const uint4& a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n56k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27}, "
      "{%28, %29, %30, %31}, %32, 0, 1, 1, 0;\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]),
        "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]),
        "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]),
        "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b)
      : "memory");
}

/// sums += a · b.
__device__ __forceinline__ void multiply(Sums& d, const uint4& a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n56k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27}, "
      "{%28, %29, %30, %31}, %32, 1, 1, 1, 0;\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b)
      : "memory");
}

/// The same with a in shared memory.
__device__ __forceinline__ void multiply(Sums& d, unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n56k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27}, "
      "%28, %29, 1, 1, 1, 0, 0;\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
      : "l"(a), "l"(b)
      : "memory");
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `pending` of the latest groups of products are unfinished.
template <int pending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Sums that are read only behind this point, as far as the compiler knows.
__device__ __forceinline__ void fence_sums(Sums& sums) {
#pragma unroll
  for (int i = 0; i < columns / 2; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

/// Two rows of the convolution, or the one that ends a strip's part of an image, and where their rows of
/// blocks lie in the ring's order. The rows of pair i belong to pooled row i, the first to i - 1 as well.
struct Pair {
  int image, index;
  int first, behind;  // pooled rows of this image
  int left;           // pooled rows of later images
  int block_row;      // the first of four, or of three

  __device__ Pair(int begin, int end) : image(begin / pooled_height), left(end - begin), block_row(0) {
    take(begin % pooled_height);
  }

  __device__ bool begins_part() const { return index == first; }
  __device__ bool two_rows() const { return index != behind; }
  __device__ int last_block_row() const { return block_row + (two_rows() ? block_taps : block_taps - 1); }
  __device__ int next_block_row() const { return block_row + (two_rows() ? 2 : block_taps); }

  /// Parts of different images share no row of blocks.
  __device__ bool advance() {
    block_row = next_block_row();
    if (two_rows()) {
      ++index;
      return true;
    }
    if (left == 0) return false;
    ++image;
    take(0);
    return true;
  }

 private:
  __device__ void take(int row) {
    index = first = row;
    behind = min(row + left, pooled_height);
    left -= behind - first;
  }
};

/// The lines of the input that a row of blocks has.
struct Lines {
  int top, first, behind;

  __device__ explicit Lines(int block_row)
      : top(4 * block_row - problem::padding), first(max(top, 0)), behind(min(top + 4, problem::height)) {}
};

/// What a sum becomes: scale · sum + bias.
struct Finish {
  float scale;
  float bias;
};

/// P and X of two pixels.
__device__ __forceinline__ void split(float x, float y, unsigned& large, unsigned& small) {
  const __half2 p = __floats2half2_rn((1.0f - share) * x, (1.0f - share) * y);
  const __half2 rest = __floats2half2_rn(x - __low2float(p), y - __high2float(p));
  large = *reinterpret_cast<const unsigned*>(&p);
  small = *reinterpret_cast<const unsigned*>(&rest);
}

/// Filter of a group of eight rows of the matrix unit. Neighbours among 32 lanes are four apart: their
/// places in the output, and so in the ring, differ in the bank.
__device__ __forceinline__ int filter_of(int group, int row) {
  return group / 4 * 32 + row * 4 + group % 4;
}

}  // namespace

/// Rewrites the weights as FP16: Q in the order in which threads hold it for the matrix unit,
/// [step][warp][lane][8] for the first 64 filters, [step][warp][lane][4] for the others, and Y in the order
/// in which the matrix unit reads it, [step][chunk][row][8]; the others' Y twice, for two rows. Each filter is
/// scaled by a power of two that puts its largest weight between 1 and 2, so that small weights keep their
/// digits. A thread block does one filter.
extern "C" __global__ void __launch_bounds__(128)
    pack_weight(const float* __restrict__ weight, const float* __restrict__ bias,
                __half* __restrict__ packed, float2* __restrict__ finish) {
  asm volatile("griddepcontrol.launch_dependents;");
  constexpr int kernel_area = problem::kernel * problem::kernel;
  constexpr int filter_weights = channels * kernel_area;
  __shared__ float own[filter_weights];
  __shared__ float warp_largest[4];
  const int group = blockIdx.x / 8, row = blockIdx.x % 8;
  const int filter = filter_of(group, row);

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

  const bool paired = filter >= single_filters;
  const int warp = paired ? group - single_filters / 8 : group / 2;
  __half* const y_to = packed + (q_bytes + (paired ? single_y_bytes : 0)) / 2;
  for (int i = threadIdx.x; i < single_steps * 16; i += 128) {
    const int k = i % 16, step = i / 16;
    const int tap = step / channels, channel = step % channels;
    const int ky = tap / block_taps * 4 + k % 8 / 2;
    const int kx = tap % block_taps * 4 + k / 8 * 2 + k % 2;
    const bool inside = ky < problem::kernel && kx < problem::kernel;
    const float value = inside ? own[channel * kernel_area + ky * problem::kernel + kx] * up : 0.0f;
    // Registers: rows 0 to 7 and 8 to 15 of k < 8, then of k >= 8; the paired ones have rows 0 to 7 alone.
    const int thread = (step * 4 + warp) * 32 + row * 4 + k % 8 / 2;
    const int to = paired ? single_steps * 4 * 32 * 8 + thread * 4 + k / 8 * 2 + k % 2
                          : thread * 8 + (k / 8 * 2 + group % 2) * 2 + k % 2;
    const __half q = __float2half_rn(value);
    const __half y = __float2half_rn(__half2float(q) + (value - __half2float(q)) * (1.0f / share));
    packed[to] = q;
    const int own_row = warp * 16 + (paired ? 0 : group % 2 * 8) + row;
    y_to[((step * 2 + k / 8) * step_rows + own_row) * 8 + k % 8] = y;
    if (paired) y_to[(((step + row_steps) * 2 + k / 8) * step_rows + own_row + 8) * 8 + k % 8] = y;
  }
  if (paired) {
    // The second row has nothing of the first row of blocks, the first row nothing of the last.
    for (int i = threadIdx.x; i < row_steps * 16; i += 128) {
      const int to = (i / 8 * step_rows + warp * 16 + row) * 8 + i % 8;
      y_to[to + 8 * 8] = __float2half_rn(0.0f);
      y_to[to + single_y_bytes / 2] = __float2half_rn(0.0f);
    }
  }
  if (threadIdx.x == 0) finish[filter] = {down, bias[filter]};
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    convolve_pool(const float* __restrict__ input, const uint4* packed, const float2* finish,
                  float* __restrict__ output) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned full = shared + offset_bars;
  const unsigned empty = full + ring * 8;
  const unsigned raw_full = empty + ring * 8;
  const unsigned raw_empty = raw_full + channels * 8;
  const unsigned staged_bars = raw_empty + channels * 8;
  const unsigned written_bars = staged_bars + stages * 8;
  const unsigned weight_bar = written_bars + stages * 8;

  if (threadIdx.x == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full + 8 * i, converters * 32);
      bar_init(empty + 8 * i, consumer_warps * 32);
    }
    for (int i = 0; i < channels; ++i) {
      bar_init(raw_full + 8 * i, 1);
      bar_init(raw_empty + 8 * i, 32);
    }
    bar_init(weight_bar, 1);
    for (int i = 0; i < stages; ++i) {
      bar_init(staged_bars + 8 * i, consumer_warps * 32);
      bar_init(written_bars + 8 * i, writers * 32);
    }
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

  const int begin = static_cast<int>(1ll * rows * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(1ll * rows * (blockIdx.x + 1) / gridDim.x);
  if (begin == end) return;

  const auto wait_for_row = [&](int block_row) {
    bar_wait(full + 8 * (block_row % ring), block_row / ring & 1);
  };
  const auto release = [&](int block_row) {
    bar_arrive(empty + 8 * (block_row % ring));
  };
  const auto pixels = [&](int block_row) {
    return descriptor(shared + offset_ring + block_row % ring * row_bytes, plane_bytes);
  };
  // Pooled row n of the strip may overwrite the one `stages` rows before, and where an image begins, any.
  const auto wait_for_staging = [&](int n, int row) {
    bar_wait(written_bars + 8 * (n % stages), n / stages & 1 ^ 1);
    if (row == 0) {
      for (int before = max(n - stages + 1, 0); before < n; ++before) {
        bar_wait(written_bars + 8 * (before % stages), before / stages & 1);
      }
    }
  };
  float* const staged = reinterpret_cast<float*>(memory + offset_staged);
  // Pools a row horizontally. A lane has two neighbouring columns of each eight; the third of its window
  // is the first of its neighbour among four, or the first of the next eight. Scaling by a positive
  // number, adding the bias and ReLU keep the order, so they follow the maximum.
  const int place = lane % 4;
  const auto stage = [&](const float(&values)[columns / 4], const Finish& f, int filter, int image,
                         int row) {
    const unsigned first = (image * filters + filter) * pooled_pixels + row * pooled_width + place;
    float* const to = staged + filter * staged_pixels;
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
      const float offered = place == 0 && j + 1 < columns / 8 ? values[2 * j + 2] : values[2 * j];
      const float right = __shfl_sync(0xffffffffu, offered, (lane & ~3) | ((lane + 1) & 3));
      const float largest = fmaxf(fmaxf(values[2 * j], values[2 * j + 1]), right);
      if (4 * j + 3 < pooled_width || 4 * j + place < pooled_width) {
        to[(first + 4 * j) % staged_pixels] = fmaxf(fmaf(largest, f.scale, f.bias), 0.0f);
      }
    }
  };
  // The maxima of a row of sums and what is known of the window.
  const auto pool = [&](const Sums& sums, int half, const float(&best)[columns / 4], const Finish& f,
                        int filter, int image, int row) {
    float values[columns / 4];
#pragma unroll
    for (int i = 0; i < columns / 4; ++i) {
      values[i] = fmaxf(best[i], sums[i / 2 * 4 + 2 * half + i % 2]);
    }
    stage(values, f, filter, image, row);
  };

  if (warp < 4) {
    // ---- 64 filters, one row at a time ----
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
    wait_for_previous_kernel();
    if (threadIdx.x == 0) {
      bar_expect(weight_bar, y_bytes);
      const unsigned char* const from = reinterpret_cast<const unsigned char*>(packed) + q_bytes;
      bulk_load(shared + offset_y, from, single_y_bytes, weight_bar);
      bulk_load(shared + offset_y + single_y_bytes, from + single_y_bytes, paired_y_bytes, weight_bar);
    }
    uint4 weights[single_steps];
#pragma unroll
    for (int i = 0; i < single_steps; ++i) weights[i] = __ldcg(packed + (i * 4 + warp) * 32 + lane);
    int own[2];
    Finish f[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half] = filter_of(warp * 2 + half, lane / 4);
      const float2 loaded = __ldcg(finish + own[half]);
      f[half] = {loaded.x, loaded.y};
    }
    const unsigned long long all_y = descriptor(shared + offset_y, step_rows * 16);
    bar_wait(weight_bar, 0);
    const auto start = [&](Sums& sums, int block_row) {
      // Opaque: else the compiler keeps all descriptors from one row to the next, in memory.
      unsigned long long y = all_y;
      asm volatile("" : "+l"(y));
      begin_products();
#pragma unroll
      for (int ty = 0; ty < block_taps; ++ty) {
        unsigned long long b = pixels(block_row + ty);
        asm volatile("" : "+l"(b));
#pragma unroll
        for (int i = 0; i < row_steps; ++i) {
          const unsigned long long from = b + (i % channels * 2 * plane_bytes + i / channels * 16) / 16;
          if (ty == 0 && i == 0) {
            multiply_first(sums, weights[0], from);
          } else {
            multiply(sums, weights[ty * row_steps + i], from);
          }
          multiply(sums, y + (ty * row_steps + i) * step_bytes / 16, from + product_bytes / 16);
        }
      }
      commit_products();
    };

    Pair pair(begin, end);
    float best[2][columns / 4] = {};  // of the window that the last pair began
    int n = 0;
    bool more = true;
#pragma unroll 1
    while (more) {
      Sums even, odd;
      wait_for_row(pair.block_row + block_taps - 1);
      start(even, pair.block_row);
      if (pair.two_rows()) {
        wait_for_row(pair.last_block_row());
        start(odd, pair.block_row + 1);
      } else {
        commit_products();
      }
      if (!pair.begins_part()) wait_for_staging(n, pair.index - 1);
      wait_for_products<1>();
      fence_sums(even);
      if (!pair.begins_part()) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          pool(even, half, best[half], f[half], own[half], pair.image, pair.index - 1);
        }
        bar_arrive(staged_bars + 8 * (n % stages));
        ++n;
      }
      wait_for_products<0>();
      fence_sums(odd);
      for (int row = pair.block_row; row < pair.next_block_row(); ++row) release(row);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < columns / 4; ++i) {
          const int at = i / 2 * 4 + 2 * half + i % 2;
          best[half][i] = fmaxf(even[at], odd[at]);
        }
      }
      more = pair.advance();
    }
  } else if (warp < consumer_warps) {
    // ---- 32 filters, two rows at a time ----
    asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
    wait_for_previous_kernel();
    // Rows 0 to 7 of the matrix unit are the first row of a pair, rows 8 to 15 the second: the same
    // weights, one row of blocks later.
    uint4 weights[paired_steps];
    const uint2* const pairs_packed = reinterpret_cast<const uint2*>(packed + single_steps * 4 * 32);
#pragma unroll
    for (int i = 0; i < row_steps; ++i) {
      weights[i].y = weights[i].w = 0;
      weights[single_steps + i].x = weights[single_steps + i].z = 0;
    }
#pragma unroll
    for (int i = 0; i < single_steps; ++i) {
      const uint2 loaded = __ldcg(pairs_packed + (i * 4 + warp - 4) * 32 + lane);
      weights[i].x = weights[row_steps + i].y = loaded.x;
      weights[i].z = weights[row_steps + i].w = loaded.y;
    }
    const int own = filter_of(single_filters / 8 + warp - 4, lane / 4);
    const float2 loaded = __ldcg(finish + own);
    const Finish f = {loaded.x, loaded.y};

    const unsigned long long y = descriptor(shared + offset_y + single_y_bytes, step_rows * 16);
    bar_wait(weight_bar, 0);

    Sums sums;
    Pair pair(begin, end);
    float best[columns / 4] = {};  // of the window that the last pair began
    int n = 0;
    bool more = true;
#pragma unroll 1
    while (more) {
      wait_for_row(pair.last_block_row());
      begin_products();
#pragma unroll
      for (int ty = 0; ty <= block_taps; ++ty) {
        // Without a second row, what the fourth row of blocks gives is of no use: any will do.
        const int block_row = ty < block_taps ? pair.block_row + ty : pair.last_block_row();
        const unsigned long long b = pixels(block_row);
#pragma unroll
        for (int i = 0; i < row_steps; ++i) {
          const unsigned long long from = b + (i % channels * 2 * plane_bytes + i / channels * 16) / 16;
          if (ty == 0 && i == 0) {
            multiply_first(sums, weights[0], from);
          } else {
            multiply(sums, weights[ty * row_steps + i], from);
          }
          multiply(sums, y + (ty * row_steps + i) * step_bytes / 16, from + product_bytes / 16);
        }
      }
      commit_products();
      if (!pair.begins_part()) wait_for_staging(n, pair.index - 1);
      wait_for_products<0>();
      fence_sums(sums);
      for (int row = pair.block_row; row < pair.next_block_row(); ++row) release(row);
      if (!pair.begins_part()) {
        pool(sums, 0, best, f, own, pair.image, pair.index - 1);
        bar_arrive(staged_bars + 8 * (n % stages));
        ++n;
      }
#pragma unroll
      for (int i = 0; i < columns / 4; ++i) {
        best[i] = fmaxf(sums[i / 2 * 4 + i % 2], sums[i / 2 * 4 + 2 + i % 2]);
      }
      more = pair.advance();
    }
  } else if (warp < first_writer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 48;");
    if (warp < load_warp) {
      // ---- one channel: from pixels to blocks ----
      const int channel = warp - first_converter;
      Pair pair(begin, end);
      int n = 0;  // the row of blocks' place in both rings' order
      bool more = true;
      while (more) {
        int image_row = 2 * pair.first;
        const int last_row = 2 * pair.behind + block_taps - 1;
        while (pair.two_rows()) pair.advance();
        more = pair.advance();
#pragma unroll 1
        for (; image_row <= last_row; ++image_row, ++n) {
          const unsigned char* const raw =
              memory + offset_raw + channel * raw_channel + lane * 16;
          unsigned char* const to =
              memory + offset_ring + n % ring * row_bytes + channel * 2 * plane_bytes + lane * 16;
          constexpr int half_row = (blocks_wide - 1) / 2;
          bar_wait(raw_full + 8 * channel, n & 1);
          bar_wait(empty + 8 * (n % ring), n / ring & 1 ^ 1);
          if (lane < half_row) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              unsigned left_pixels[products][4], right_pixels[products][4];
#pragma unroll
              for (int dy = 0; dy < 4; ++dy) {
                const int y = 4 * image_row - problem::padding + dy;
                float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
                if (y >= 0 && y < problem::height) {
                  four = *reinterpret_cast<const float4*>(raw + dy * raw_line + half * half_row * 16);
                }
                split(four.x, four.y, left_pixels[0][dy], left_pixels[1][dy]);
                split(four.z, four.w, right_pixels[0][dy], right_pixels[1][dy]);
              }
              // The two right pixels are the left half of the next block, the others the right half of
              // this one.
#pragma unroll
              for (int p = 0; p < products; ++p) {
                unsigned char* const unit = to + p * product_bytes + half * half_row * 16;
                *reinterpret_cast<uint4*>(unit + 16) = {right_pixels[p][0], right_pixels[p][1],
                                                        right_pixels[p][2], right_pixels[p][3]};
                *reinterpret_cast<uint4*>(unit + plane_bytes) = {left_pixels[p][0], left_pixels[p][1],
                                                                 left_pixels[p][2], left_pixels[p][3]};
              }
            }
          }
          fence_async();
          bar_arrive(full + 8 * (n % ring));
          bar_arrive(raw_empty + 8 * channel);
        }
      }
    } else if (lane == 0) {
      // ---- the copy engine brings four lines of each channel ----
      Pair pair(begin, end);
      const auto prefetch = [&](int image, int row) {
        const Lines lines(row);
        const float* const from = input + image * channels * image_pixels + lines.first * problem::width;
#pragma unroll
        for (int channel = 0; channel < channels; ++channel) {
          bulk_prefetch(from + channel * image_pixels, (lines.behind - lines.first) * raw_line);
        }
      };
      int n = 0;  // the row of blocks' place in both rings' order
      bool more = true;
      for (int i = 1; i < ahead; ++i) prefetch(pair.image, min(2 * pair.first + i, blocks_high - 1));
      while (more) {
        const int image = pair.image;
        int image_row = 2 * pair.first;
        const int last_row = 2 * pair.behind + block_taps - 1;
        while (pair.two_rows()) pair.advance();
        more = pair.advance();
#pragma unroll 1
        for (; image_row <= last_row; ++image_row, ++n) {
          if (image_row + ahead <= last_row) {
            prefetch(image, image_row + ahead);
          } else if (more) {
            prefetch(image + 1, image_row + ahead - last_row - 1);
          }
          const Lines lines(image_row);
          const unsigned to = shared + offset_raw + (lines.first - lines.top) * raw_line;
          const float* const from = input + image * channels * image_pixels + lines.first * problem::width;
          const unsigned bytes = (lines.behind - lines.first) * raw_line;
#pragma unroll
          for (int channel = 0; channel < channels; ++channel) {
            bar_wait(raw_empty + 8 * channel, n & 1 ^ 1);
            bar_expect(raw_full + 8 * channel, bytes);
            bulk_load(to + channel * raw_channel, from + channel * image_pixels, bytes, raw_full + 8 * channel);
          }
        }
      }
    }
  } else {
    // ---- out, in whole lines: four filters at a time, eight lanes each ----
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    constexpr int rounds = filters / (4 * writers);
    constexpr int batch = 3;  // rounds whose loads are under way together
    static_assert(rounds % batch == 0);
    const int own_filter = (warp - first_writer) * 4 + lane / 8;
    const float* const from = staged + own_filter * staged_pixels;
    for (int n = 0; n < end - begin; ++n) {
      const int image = (begin + n) / pooled_height, row = (begin + n) % pooled_height;
      // Pixels of the image in the rows before that are this block's: the first line may be whole only
      // with the second row.
      const unsigned before = min(n, row) * pooled_width;
      const bool last = n + 1 == end - begin || row + 1 == pooled_height;
      unsigned start = (image * filters + own_filter) * pooled_pixels + row * pooled_width;
      bar_wait(staged_bars + 8 * (n % stages), n / stages & 1);
#pragma unroll 1
      for (int i = 0; i < rounds; i += batch) {
        const float* const own = from + i * 4 * writers * staged_pixels;
        // One line at most: 31 pixels of the rows before and 27 of this one.
        float4 values[batch];
        bool full[batch];
#pragma unroll
        for (int j = 0; j < batch; ++j) {
          const unsigned first_pixel = start + j * 4 * writers * pooled_pixels;
          const unsigned line = first_pixel / 32 * 32, pixel = line + lane % 8 * 4;
          full[j] = line + before >= first_pixel && line + 32 <= first_pixel + pooled_width;
          if (full[j]) {
            values[j] = *reinterpret_cast<const float4*>(own + j * 4 * writers * staged_pixels +
                                                         pixel % staged_pixels);
          }
        }
#pragma unroll
        for (int j = 0; j < batch; ++j) {
          const unsigned first_pixel = start + j * 4 * writers * pooled_pixels;
          const unsigned pixel = first_pixel / 32 * 32 + lane % 8 * 4;
          if (full[j]) *reinterpret_cast<float4*>(output + pixel) = values[j];
        }
        if (before < 32 || last) {
          // The rest of a line that another block begins, and the beginning of one that another ends.
#pragma unroll 1
          for (int j = 0; j < batch; ++j) {
            const unsigned first_pixel = start + j * 4 * writers * pooled_pixels;
            const unsigned part = first_pixel - before, behind = first_pixel + pooled_width;
            const unsigned line = first_pixel / 32 * 32;
            const auto copy = [&](unsigned pixel, unsigned end_pixel) {
#pragma unroll 1
              for (pixel += lane % 8; pixel < end_pixel; pixel += 8) {
                output[pixel] = own[j * 4 * writers * staged_pixels + pixel % staged_pixels];
              }
            };
            if (line < part && line + 32 <= behind) copy(part, line + 32);
            if (last) copy(max(part, behind / 32 * 32), behind);
          }
        }
        start += batch * 4 * writers * pooled_pixels;
      }
      bar_arrive(written_bars + 8 * (n % stages));
    }
  }
}
