// Layer normalisation over rows of 4194304 floats, for sm_80 and 99 KB of shared memory a block.
//
// Where 264 blocks are resident at once (two on each of 132 multiprocessors), x, weight and bias are
// read exactly once. A block has the same 3976 quads of every row. Its weight and bias stay in shared
// memory as 20-bit fixed point; the row being normalised and the first quads of the next one stay in
// registers, and some more are summed while they lie in a ring that cp.async fills: a row's sums are
// complete lead + peek steps before its normalisation begins, and in those one warp of each block
// exchanges the moments. A thread reads only what it has copied itself, so no barrier is needed.
//
// On any smaller grid the features are swept twice: upwards for the moments, downwards for the rest.
//
// That is for the sizes of the problem itself, whose constants stand below. Other sizes have a kernel of their own,
// at the end.

#include "problem.h"

namespace at_own_sizes {

namespace problem {
inline constexpr int batch = 16;
inline constexpr int channels = 64;
inline constexpr int height = 256;
inline constexpr int width = 256;
inline constexpr int features = 4194304;
inline constexpr double eps = 1e-05;
inline constexpr int x_elements = 67108864;
inline constexpr int weight_elements = 4194304;
inline constexpr int bias_elements = 4194304;
inline constexpr int y_elements = 67108864;
}  // namespace problem

namespace {

constexpr int rows = problem::batch;
constexpr int row_quads = problem::features / 4;

constexpr int blocks = 264;  // that the resident variant needs
constexpr int compute_warps = 5;
constexpr int compute_threads = compute_warps * 32;
constexpr int threads = compute_threads + 32;
constexpr int full_stages = 24;
constexpr int stages = full_stages + 1;       // and the tail
constexpr int stage_quads = compute_threads;  // of one block
constexpr int stage_bytes = stage_quads * 16;
constexpr int stride = blocks * stage_quads;  // quads of one stage in all blocks
constexpr int full_quads = full_stages * stage_quads;
constexpr int tail_quads = 136;  // of the first blocks; the others have none
constexpr int tail_blocks = 256;
constexpr int block_quads = full_quads + tail_quads;
static_assert(full_stages * stride + tail_blocks * tail_quads == row_quads,
              "the stages make up a row");
static_assert(tail_quads <= stage_quads, "the tail is one stage");
constexpr int middle = full_stages / 2;  // offsets from there fit into an instruction

constexpr int ring = 8;
constexpr int lead = 5;  // quads of the next row in registers
constexpr int peek = 2;  // stages that are summed before they leave the ring
static_assert((ring & (ring - 1)) == 0 && peek < ring, "slots are found by masking");
static_assert(lead + peek < stages, "sums run ahead by less than a row");

constexpr int offset_high = ring * stage_bytes;              // uint4 [block_quads]
constexpr int offset_low = offset_high + block_quads * 16;   // unsigned [block_quads]
constexpr int offset_moments = offset_low + block_quads * 4;  // float4 [2][compute_warps]
constexpr int offset_norm = offset_moments + 2 * compute_warps * 16;  // float4 [2]
constexpr int offset_bars = offset_norm + 2 * 16;                     // moments, norm
constexpr int offset_scales = offset_bars + 16;                       // float2 [stages][compute_warps]
constexpr int shared_bytes = offset_scales + stages * compute_warps * 8;
static_assert(shared_bytes <= 101376, "as in the plan");
static_assert(offset_moments % 16 == 0, "alignment");

// Words of every row: one of each block, then copies of the result on lines of their own.
constexpr int most_blocks = 512;  // that take part in the two sweeps
constexpr int copies = 8;
constexpr int line_words = 16;
constexpr int results_at = rows * most_blocks;

constexpr unsigned long long sentinel = 0xffffffffffffffffull;
constexpr unsigned all_lanes = 0xffffffffu;

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

/// Every lane arrives for what it has read or written itself: compute-sanitizer's racecheck does not
/// follow an order that a __syncwarp makes.
__device__ __forceinline__ void bar_arrive(unsigned bar) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(bar)
               : "memory");
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
  while (!bar_passed(bar, parity)) __nanosleep(20);
}

__device__ __forceinline__ void copy_quad(unsigned to, const float4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int pending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

__device__ __forceinline__ float4 shared_quad(unsigned from) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
  return v;
}

__device__ __forceinline__ float4 load_quad(const float4* from) {
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}

/// A load that stays where it is written, long before its use.
__device__ __forceinline__ float load_early(const float* from) {
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
  return value;
}

__device__ __forceinline__ void publish(unsigned long long* to, float low, float high) {
  const unsigned long long packed =
      static_cast<unsigned long long>(__float_as_uint(low)) |
      (static_cast<unsigned long long>(__float_as_uint(high)) << 32);
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(packed) : "memory");
}

__device__ __forceinline__ unsigned long long published(const unsigned long long* from) {
  unsigned long long word;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}

__device__ __forceinline__ float low_of(unsigned long long word) {
  return __uint_as_float(static_cast<unsigned>(word));
}

__device__ __forceinline__ float high_of(unsigned long long word) {
  return __uint_as_float(static_cast<unsigned>(word >> 32));
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    v += __shfl_xor_sync(all_lanes, v, distance);
  }
  return v;
}

__device__ __forceinline__ void add(const float4& v, float shift, float& sum, float& squares) {
  const float a = v.x - shift;
  const float b = v.y - shift;
  const float c = v.z - shift;
  const float d = v.w - shift;
  sum += (a + b) + (c + d);
  squares = fmaf(a, a, squares);
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
}

/// Mean and squared deviations of the whole warp from every lane's count, mean and squares.
__device__ __forceinline__ float2 warp_moments_of(float count, float mean, float squares,
                                                  float total_count) {
  const float whole = warp_sum(count * mean) / total_count;
  const float difference = mean - whole;
  const float all = warp_sum(fmaf(count * difference, difference, squares));
  return make_float2(whole, all);
}

// ---- 20-bit fixed point. Word i of four holds the upper 16 bits of weight i (in its upper half) and
// of bias i; byte i of a fifth word the lower four bits of bias i (upper nibble) and of weight i. A
// value is unpacked into the upper 20 bits of a word; what lies below it is known when it is packed,
// and is part of the value. ----

constexpr float full_scale = 2147000000.0f;  // the largest magnitude of what shares a scale

/// The larger magnitude; NaN if there is one.
__device__ __forceinline__ float larger(float largest, float value) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(largest), "f"(fabsf(value)));
  return result;
}

__device__ __forceinline__ float larger(float largest, const float4& v) {
  return larger(larger(larger(larger(largest, v.x), v.y), v.z), v.w);
}

/// The largest magnitude of a warp's quads; NaN if there is one.
__device__ __forceinline__ float warp_larger(float largest) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = larger(largest, __shfl_xor_sync(all_lanes, largest, distance));
  }
  return largest;
}

__device__ __forceinline__ float scale_of(float largest) { return largest * (1.0f / full_scale); }

/// Zeros where all is tiny; infinite and NaN scales stay, and make the results NaN.
__device__ __forceinline__ float inverse_of(float scale) {
  return scale > 1e-36f ? 1.0f / scale : 0.0f;
}

/// The upper 20 bits of the word that is nearest to value * inverse and whose next four are `below`.
__device__ __forceinline__ int upper_20(float value, float inverse, int below) {
  const int whole = __float2int_rn(value * inverse);
  return min(max(((whole >> 8) - below + 8) >> 4, -524288), 524287);
}

struct Packed {
  uint4 high;
  unsigned low;
};

__device__ __forceinline__ Packed pack(const float4& w, float w_inverse, const float4& b,
                                       float b_inverse) {
  const float ws[4] = {w.x, w.y, w.z, w.w};
  const float bs[4] = {b.x, b.y, b.z, b.w};
  unsigned high[4];
  unsigned low = 0;
  int nibble = 0;  // that will lie below the next value
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int of_weight = upper_20(ws[i], w_inverse, nibble);
    const int of_bias = upper_20(bs[i], b_inverse, of_weight & 15);
    nibble = of_bias & 15;
    high[i] = (static_cast<unsigned>(of_weight >> 4) << 16) |
              (static_cast<unsigned>(of_bias >> 4) & 0xffffu);
    low |= static_cast<unsigned>((nibble << 4) | (of_weight & 15)) << (8 * i);
  }
  return {make_uint4(high[0], high[1], high[2], high[3]), low};
}

/// Weight: the upper half of `high`, then byte `index` of the low word times 16.
template <int index>
__device__ __forceinline__ float weight_of(unsigned high, unsigned low_by_16) {
  return static_cast<float>(
      static_cast<int>(__byte_perm(high, low_by_16, 0x3200 | (4 + index) << 4 | (4 + index))));
}

/// Bias: the lower half of `high`, then byte `index` of the low word.
template <int index>
__device__ __forceinline__ float bias_of(unsigned high, unsigned low) {
  return static_cast<float>(
      static_cast<int>(__byte_perm(high, low, 0x1000 | (4 + index) << 4 | (4 + index))));
}

/// (x - first) * factor + offset is the normalised value (times the weight's scale, if one is used).
struct Norm {
  float first;
  float factor;
  float offset;
};

__device__ __forceinline__ float4 normalised(const float4& x, const Norm& n, float bias_scale,
                                             const uint4& high, unsigned low) {
  const unsigned by_16 = low << 4;
  float4 r;
  r.x = fmaf(fmaf(x.x - n.first, n.factor, n.offset), weight_of<0>(high.x, by_16),
             bias_of<0>(high.x, low) * bias_scale);
  r.y = fmaf(fmaf(x.y - n.first, n.factor, n.offset), weight_of<1>(high.y, by_16),
             bias_of<1>(high.y, low) * bias_scale);
  r.z = fmaf(fmaf(x.z - n.first, n.factor, n.offset), weight_of<2>(high.z, by_16),
             bias_of<2>(high.z, low) * bias_scale);
  r.w = fmaf(fmaf(x.w - n.first, n.factor, n.offset), weight_of<3>(high.w, by_16),
             bias_of<3>(high.w, low) * bias_scale);
  return r;
}

/// Merges the words of `active` blocks with a warp and publishes mean and factor of the row.
/// count_of(block): how many values a block's word stands for.
template <class CountOf>
__device__ __forceinline__ float2 collect(const unsigned long long* words, int active, int lane,
                                          CountOf count_of) {
  // Relative to the first block's mean.
  unsigned long long word;
  do {
    word = published(words);
  } while (word == sentinel);
  const float reference = low_of(word);
  float count = 0.0f;
  float sum = 0.0f;
  float squares = 0.0f;
  for (int base = 0; base < active; base += 4 * 32) {
    unsigned long long got[4];
    bool ready;
    do {
      ready = true;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int other = base + 32 * i + lane;
        got[i] = other < active ? published(words + other) : 0;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) ready = ready && got[i] != sentinel;
    } while (!__all_sync(all_lanes, ready));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int other = base + 32 * i + lane;
      const float n = other < active ? count_of(other) : 0.0f;
      const float difference = low_of(got[i]) - reference;
      count += n;
      sum = fmaf(n, difference, sum);
      squares += fmaf(n * difference, difference, high_of(got[i]));
    }
  }
  const float local = count > 0.0f ? sum / count : 0.0f;
  const float own = fmaxf(fmaf(-sum, local, squares), 0.0f);
  const float2 of_all = warp_moments_of(count, local, own, static_cast<float>(problem::features));
  const float variance = of_all.y * (1.0f / problem::features);
  return make_float2(reference + of_all.x,
                     1.0f / sqrtf(variance + static_cast<float>(problem::eps)));
}

__device__ __forceinline__ unsigned long long* results_of(unsigned long long* slots, int row) {
  return slots + results_at + row * (copies * line_words);
}

__device__ __forceinline__ void publish_result(unsigned long long* slots, int row, int lane,
                                               float2 result) {
  if (lane < copies) publish(results_of(slots, row) + lane * line_words, result.x, result.y);
}

__device__ __forceinline__ float2 await_result(unsigned long long* slots, int row, int block) {
  const unsigned long long* const from = results_of(slots, row) + block % copies * line_words;
  unsigned long long word;
  while ((word = published(from)) == sentinel) __nanosleep(40);
  return make_float2(low_of(word), high_of(word));
}

// ---- The resident variant ----------------------------------------------------------------------

__device__ __forceinline__ float resident_count(int block) {
  return static_cast<float>(4 * (full_quads + (block < tail_blocks ? tail_quads : 0)));
}

__device__ __forceinline__ float warp_count(int warp, int tail) {
  return static_cast<float>(32 * 4 * full_stages + 4 * min(max(tail - 32 * warp, 0), 32));
}

/// One warp merges the block's moments and publishes them; in every row the one of another block
/// merges those of all blocks.
__device__ __forceinline__ void exchange(const float* x, unsigned long long* slots,
                                         const float4* warp_moments, float4* shared_norm,
                                         unsigned moments_bar, unsigned norm_bar) {
  const int lane = threadIdx.x % 32;
  const int block = blockIdx.x;
  const int tail = block < tail_blocks ? tail_quads : 0;
  const bool has = lane < compute_warps;
  // Before row 0 nothing is normalised.
  if (lane == 0) shared_norm[0] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  bar_arrive(norm_bar);
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
    const unsigned buffer = static_cast<unsigned>(row) & 1u;
    unsigned long long* const words = slots + row * most_blocks;
    const float row_first = load_early(x + static_cast<long long>(row) * problem::features);
    bar_wait(moments_bar, buffer);
    __syncwarp();
    const float4 m = has ? warp_moments[buffer * compute_warps + lane]
                         : make_float4(row_first, 0.0f, 0.0f, 0.0f);
    const float2 of_block = warp_moments_of(has ? warp_count(lane, tail) : 0.0f,
                                            (m.x - row_first) + m.y, m.z, resident_count(block));
    if (lane == 0) publish(words + block, of_block.x, of_block.y);
    __syncwarp();
    float2 result;
    if (block == row * 16) {
      result = collect(words, blocks, lane, resident_count);
      publish_result(slots, row, lane, result);
    } else if (lane == 0) {
      result = await_result(slots, row, block);
    }
    if (lane == 0) {
      shared_norm[buffer ^ 1u] = make_float4(row_first, result.y, -result.x * result.y, 0.0f);
    }
    __syncwarp();
    bar_arrive(norm_bar);
  }
}

__device__ __forceinline__ void resident(const float* __restrict__ x,
                                         const float* __restrict__ weight,
                                         const float* __restrict__ bias, float* __restrict__ y,
                                         unsigned char* memory, unsigned moments_bar,
                                         unsigned norm_bar) {
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int block = blockIdx.x;
  const bool in_tail = block < tail_blocks && thread < tail_quads;
  const int begin = block * stage_quads + thread + middle * stride;
  // From there to the thread's quad of the tail.
  const int to_tail = full_stages * stride + block * tail_quads + thread - begin;
  float4* const warp_moments = reinterpret_cast<float4*>(memory + offset_moments);
  const float4* const shared_norm = reinterpret_cast<const float4*>(memory + offset_norm);
  const unsigned staged = static_cast<unsigned>(__cvta_generic_to_shared(memory)) + thread * 16;
  uint4* const high = reinterpret_cast<uint4*>(memory + offset_high) + thread;
  unsigned* const low = reinterpret_cast<unsigned*>(memory + offset_low) + thread;
  float2* const scales = reinterpret_cast<float2*>(memory + offset_scales) + warp;
  const float4* const source = reinterpret_cast<const float4*>(x) + begin;

  // Copies stage `stage` of a row to a slot, as a group of its own in any case.
  const auto copy = [&](const float4* of_row, int stage, unsigned slot, bool wanted) {
    if (stage < full_stages) {
      if (wanted) copy_quad(slot, of_row + (stage - middle) * stride);
    } else {
      if (wanted && in_tail) copy_quad(slot, of_row + to_tail);
    }
    commit_copies();
  };

  // The ring brings the stages of weight and bias in turn, then those of x.
  const float4* const weights = reinterpret_cast<const float4*>(weight) + begin;
  const float4* const biases = reinterpret_cast<const float4*>(bias) + begin;
  const auto next_of = [&](unsigned slot) {
    slot += stage_bytes;
    return slot == staged + ring * stage_bytes ? staged : slot;
  };
  const auto copy_position = [&](int n, unsigned slot) {
    const int stage = n < 2 * stages ? n / 2 : n - 2 * stages;
    const float4* const from = n >= 2 * stages ? source : n % 2 == 0 ? weights : biases;
    copy(from, stage, slot, true);
  };
  static_assert(ring <= stages && ring % 2 == 0, "what the loop below copies ahead");
  for (int n = 0; n < ring; ++n) copy_position(n, staged + n * stage_bytes);

  // What a warp has of a stage of weight or bias shares a scale.
  unsigned taken_at = staged;  // the slot that comes next
#pragma unroll 1
  for (int p = 0; p < stages; ++p) {
    float4 w = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 b = w;
    const bool mine = p < full_stages || in_tail;
    const unsigned of_bias = taken_at + stage_bytes;  // never in slot 0
    wait_copies<ring - 2>();
    if (mine) {
      w = shared_quad(taken_at);
      b = shared_quad(of_bias);
    }
    const float2 scale = make_float2(scale_of(warp_larger(larger(0.0f, w))),
                                     scale_of(warp_larger(larger(0.0f, b))));
    const Packed both = pack(w, inverse_of(scale.x), b, inverse_of(scale.y));
    copy_position(2 * p + ring, taken_at);
    copy_position(2 * p + 1 + ring, of_bias);
    taken_at = next_of(of_bias);
    if (mine) {
      high[p * stage_quads] = both.high;
      low[p * stage_quads] = both.low;
    }
    if (lane == 0) scales[p * compute_warps] = scale;
  }
  __syncwarp();

  float4 held[stages];  // the row being normalised
  float4 ahead[lead];   // the quads of the next row that follow those that are in held
  float sum = 0.0f;     // of the row that is being summed
  float squares = 0.0f;
  float shift = 0.0f;  // the thread's first element of it
#pragma unroll
  for (int p = 0; p < stages; ++p) held[p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  const auto sum_up = [&](unsigned slot, int stage, int of_row) {
    const float4 v = shared_quad(slot);
    if (stage == 0) {
      shift = v.x;
      sum = 0.0f;
      squares = 0.0f;
    }
    if (stage < full_stages || in_tail) add(v, shift, sum, squares);
    if (stage == stages - 1) {
      const int tail = block < tail_blocks ? tail_quads : 0;
      const float count = 4.0f * (in_tail ? stages : full_stages);
      const float local = sum / count;
      const float own = fmaxf(fmaf(-sum, local, squares), 0.0f);
      const float reference = __shfl_sync(all_lanes, shift, 0);
      const float2 of_warp =
          warp_moments_of(count, (shift - reference) + local, own, warp_count(warp, tail));
      if (lane == 0) {
        warp_moments[(of_row & 1) * compute_warps + warp] =
            make_float4(reference, of_warp.x, of_warp.y, 0.0f);
      }
      bar_arrive(moments_bar);
    }
  };

  // The lead of row 0 arrives, and what follows is summed.
  unsigned summed_at = taken_at;
#pragma unroll
  for (int position = -peek; position < lead; ++position) {
    wait_copies<ring - 1 - peek>();
    sum_up(summed_at, position + peek, 0);
    summed_at = next_of(summed_at);
    if (position >= 0) {
      ahead[position] = shared_quad(taken_at);
      copy(source, position + ring, taken_at, true);
      taken_at = next_of(taken_at);
    }
  }
  static_assert(lead + ring <= stages, "of row 0");

  // Before row 0 nothing is written, while row 0 comes into held.
  const float4* of_next = source;  // row + 1 of x
  float4* to = reinterpret_cast<float4*>(y) + begin;
#pragma unroll 1
  for (int row = -1; row < rows; ++row) {
    // held: row, and from its start on the quads of row + 1 instead; ahead: the `lead` quads that
    // follow those. Arriving: the rest of row + 1, then the first quads of row + 2.
    const unsigned phase = static_cast<unsigned>(row + 1) & 1u;
    bar_wait(norm_bar, phase);
    const float4 norm = shared_norm[phase];

#pragma unroll
    for (int p = 0; p < stages; ++p) {
      if (p < full_stages || in_tail) {
        const float2 scale = scales[p * compute_warps];
        const Norm scaled = {norm.x, norm.y * scale.x, norm.z * scale.x};
        const float4 finished =
            normalised(held[p], scaled, scale.y, high[p * stage_quads], low[p * stage_quads]);
        if (row >= 0) to[p < full_stages ? (p - middle) * stride : to_tail] = finished;
      }

      // Quad p of row + 1, which came `lead` steps ago, takes its place.
      float4& oldest = ahead[p % lead];
      held[p] = oldest;

      // A quad of row + 1 or of row + 2 is summed; another, `peek` stages before it, leaves the ring.
      const int summed = p + lead + peek;  // in the ring's order, from the start of row + 1
      const int of_row = row + 1 + summed / stages;
      wait_copies<ring - 1 - peek>();
      if (of_row < rows) sum_up(summed_at, summed % stages, of_row);
      oldest = shared_quad(taken_at);  // after the last row: unused
      const int next = p + lead + ring;
      copy(of_next + next / stages * row_quads, next % stages, taken_at,
           row + 1 + next / stages < rows);
      taken_at = next_of(taken_at);
      summed_at = next_of(summed_at);
    }
    of_next += row_quads;
    if (row >= 0) to += row_quads;

    // The next row's step p looks for its quad in place p % lead again.
    float4 turned[lead];
#pragma unroll
    for (int i = 0; i < lead; ++i) turned[i] = ahead[(i + stages) % lead];
#pragma unroll
    for (int i = 0; i < lead; ++i) ahead[i] = turned[i];
  }
}

// ---- Two sweeps ----------------------------------------------------------------------------------

constexpr int sweep_threads = threads;
constexpr int chunk_quads = sweep_threads;
constexpr int chunks = (row_quads + chunk_quads - 1) / chunk_quads;
constexpr int depth = rows / 2;  // quads in flight per thread

/// How many values of a row the chunks c = block, block + active, ... hold.
__device__ __forceinline__ float swept_count(int block, int active) {
  const int mine = (chunks - block + active - 1) / active;
  const int missing = (chunks - 1) % active == block ? chunks * chunk_quads - row_quads : 0;
  return static_cast<float>(4 * (mine * chunk_quads - missing));
}

__device__ __noinline__ void two_sweeps(const float* __restrict__ x,
                                           const float* __restrict__ weight,
                                           const float* __restrict__ bias, float* __restrict__ y,
                                           unsigned long long* slots, unsigned char* memory) {
  constexpr int warps = sweep_threads / 32;
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int block = blockIdx.x;
  const int active = min(static_cast<int>(gridDim.x), most_blocks);
  if (block >= active) return;
  float4* const norms = reinterpret_cast<float4*>(memory);                 // [rows]
  float* const firsts = reinterpret_cast<float*>(memory + rows * 16);      // [rows]
  float2* const of_warps = reinterpret_cast<float2*>(memory + rows * 32);  // [warps][rows]
  const float4* const source = reinterpret_cast<const float4*>(x);
  if (thread < rows) firsts[thread] = x[static_cast<long long>(thread) * problem::features];
  __syncthreads();

  // Upwards: sums of all rows, relative to their first elements.
  {
    float sums[rows];
    float squares[rows];
#pragma unroll
    for (int row = 0; row < rows; ++row) sums[row] = squares[row] = 0.0f;
#pragma unroll 1
    for (int chunk = block; chunk < chunks; chunk += active) {
      const int quad = chunk * chunk_quads + thread;
      if (quad >= row_quads) break;
      const float4* from = source + quad;
#pragma unroll
      for (int half = 0; half < rows; half += depth) {
        float4 v[depth];
#pragma unroll
        for (int i = 0; i < depth; ++i) {
          v[i] = load_quad(from);
          from += row_quads;
        }
#pragma unroll
        for (int i = 0; i < depth; ++i) {
          add(v[i], firsts[half + i], sums[half + i], squares[half + i]);
        }
      }
    }
    // A thread's values, then its warp's: plain sums relative to the same element.
    float mine = 0.0f;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const float sum = warp_sum(sums[row]);
      const float square = warp_sum(squares[row]);
      if (lane == row) mine = sum;
      if (lane == row + 16) mine = square;
    }
    float* const flat = reinterpret_cast<float*>(of_warps);  // [warps][2][rows]
    flat[warp * 32 + lane] = mine;
    __syncthreads();
    if (thread < rows) {
      float sum = 0.0f;
      float square = 0.0f;
      for (int i = 0; i < warps; ++i) {
        sum += flat[i * 32 + thread];
        square += flat[i * 32 + 16 + thread];
      }
      const float mean = sum / swept_count(block, active);
      publish(slots + thread * most_blocks + block, mean, fmaxf(fmaf(-sum, mean, square), 0.0f));
    }
  }

  // The moments of a row are merged by one block and awaited by the others.
  for (int row = warp; row < rows; row += warps) {
    float2 result;
    if (row % active == block) {
      result = collect(slots + row * most_blocks, active, lane,
                       [&](int other) { return swept_count(other, active); });
      publish_result(slots, row, lane, result);
    } else {
      result = await_result(slots, row, block);
    }
    if (lane == 0) norms[row] = make_float4(firsts[row], result.y, -result.x * result.y, 0.0f);
  }
  __syncthreads();

  // Downwards: all rows of a chunk with its weight and bias.
  int chunk = block + (chunks - 1 - block) / active * active;
  if (chunk * chunk_quads + thread >= row_quads) chunk -= active;
  if (chunk < 0) return;
  const float4* from = source + chunk * chunk_quads + thread;  // the next quad to be loaded
  float4 v[depth];
#pragma unroll
  for (int i = 0; i < depth; ++i) {
    v[i] = load_quad(from);
    from += row_quads;
  }
#pragma unroll 1
  for (; chunk >= 0; chunk -= active) {
    const int quad = chunk * chunk_quads + thread;
    const float4 w = load_quad(reinterpret_cast<const float4*>(weight) + quad);
    const float4 b = load_quad(reinterpret_cast<const float4*>(bias) + quad);
    const bool more = chunk >= active;
    float4* to = reinterpret_cast<float4*>(y) + quad;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const float4 q = v[row % depth];
      const float4 n = norms[row];
      if (row + depth == rows) from -= static_cast<long long>(rows) * row_quads + active * chunk_quads;
      if (row + depth < rows || more) v[row % depth] = load_quad(from);
      from += row_quads;
      float4 r;
      r.x = fmaf(fmaf(q.x - n.x, n.y, n.z), w.x, b.x);
      r.y = fmaf(fmaf(q.y - n.x, n.y, n.z), w.y, b.y);
      r.z = fmaf(fmaf(q.z - n.x, n.y, n.z), w.z, b.z);
      r.w = fmaf(fmaf(q.w - n.x, n.y, n.z), w.w, b.w);
      *to = r;
      to += row_quads;
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 2)
    layernorm(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ y, unsigned long long* slots) {
  extern __shared__ __align__(128) unsigned char memory[];
  if (gridDim.x < blocks) {
    two_sweeps(x, weight, bias, y, slots, memory);
    return;
  }
  if (blockIdx.x >= blocks) return;
  const unsigned moments_bar =
      static_cast<unsigned>(__cvta_generic_to_shared(memory)) + offset_bars;
  const unsigned norm_bar = moments_bar + 8;
  if (threadIdx.x == 0) {
    bar_init(moments_bar, compute_threads);
    bar_init(norm_bar, 32);
  }
  __syncthreads();
  if (threadIdx.x >= compute_threads) {
    exchange(x, slots, reinterpret_cast<const float4*>(memory + offset_moments),
             reinterpret_cast<float4*>(memory + offset_norm), moments_bar, norm_bar);
  } else {
    resident(x, weight, bias, y, memory, moments_bar, norm_bar);
  }
}

}  // namespace at_own_sizes

// ── Any other size ───────────────────────────────────────────────────────────────────────────────────

/// The sum of a value of each of 512 threads, in all of them.
__device__ float over_block(float value) {
  __shared__ float of_warp[16];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float result = 0.0f;
  for (int warp = 0; warp < 16; ++warp) result += of_warp[warp];
  return result;
}

// A block a row: its mean, then the sum of squared distances from it, then the result.
extern "C" __global__ void __launch_bounds__(512)
    layernorm_of_any_row(const float* x, const float* weight, const float* bias, float* y) {
  const long long first = 1ll * blockIdx.x * problem::features;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < problem::features; i += 512) sum += x[first + i];
  const float rough = over_block(sum) / problem::features;
  // The mean of what is left, which is small: no digits are lost at large means.
  float rest = 0.0f;
  for (int i = threadIdx.x; i < problem::features; i += 512) rest += x[first + i] - rough;
  const float mean = rough + over_block(rest) / problem::features;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < problem::features; i += 512) {
    const float distance = x[first + i] - mean;
    squares += distance * distance;
  }
  const float variance = over_block(squares) / problem::features;
  const float scale = 1.0f / sqrtf(variance + static_cast<float>(problem::eps));
  for (int i = threadIdx.x; i < problem::features; i += 512) {
    y[first + i] = (x[first + i] - mean) * scale * weight[i] + bias[i];
  }
}
