// Layer normalisation over rows of 4194304 floats; x, weight and bias are read exactly once. Stage p
// of a row is one contiguous piece of it, spread over 128 blocks; whole stages make up a row. A
// block's weight and bias stay in shared memory as 20-bit fixed point. The row being normalised and
// the first stages of the next one stay in registers, and some more are summed while they still lie in
// the ring: a row's sums are complete lead + peek steps before its normalisation begins, and in those
// the moments travel between the blocks. The compute warps never touch global memory: in a step a
// thread takes its quads from a slot of the ring and leaves finished ones in their place; mover warps
// write the slot out with a bulk copy and refill it. All that a block reads comes through the ring,
// weight and bias first, and one loop serves all rows: little code, as it comes from a cold cache.

#include "problem.h"

namespace {

constexpr int blocks = 128;
constexpr int compute_warps = 8;
constexpr int compute_threads = compute_warps * 32;
constexpr int movers = 3;  // warps that write slots out and refill them, in turn
constexpr int first_mover = compute_warps;
constexpr int exchange_warp = first_mover + movers;
constexpr int threads = compute_threads + 32 * (movers + 1);
static_assert((movers + 1) % 4 == 0, "the others are whole warpgroups");
constexpr int wide = 2;                              // quads of a thread in a stage
constexpr int stages = 32 / wide;                    // of a row
constexpr int stage_quads = wide * compute_threads;  // of one block
constexpr int stage_bytes = stage_quads * 16;
constexpr int stride = blocks * stage_quads;  // quads of one stage in all blocks
constexpr int row_quads = problem::features / 4;
static_assert(stages * stride == row_quads, "the stages make up a row");

constexpr int ring = 16 / wide;
constexpr int lead = 7;  // stages of the next row in registers
constexpr int peek = 2;  // stages that are summed before they leave the ring
static_assert(lead + peek < stages && peek < ring, "sums run ahead by less than a row");
static_assert(stages == 2 * ring, "a step's slot, and its parity, are the same in every row");

// Positions count the uses of the ring's slots: the stages of weight and bias in turn, then those of
// x, all rows in order. Position n of these brings stage n of x and takes the stage of y that lies
// `written_from` stages further back.
constexpr int parameter_positions = 2 * stages;
static_assert(parameter_positions % (2 * ring) == 0, "x begins with slot 0 and parity 0");
constexpr int loads = problem::batch * stages;
constexpr int written_from = stages + lead;  // row 0 and the lead arrive with nothing to write
constexpr int positions = loads + written_from;

// The collecting block's words of a row, and copies of the row's result.
constexpr int copies = 8;
constexpr int line_words = 16;
constexpr int results_at = problem::batch * blocks;

constexpr int offset_high = ring * stage_bytes;                     // uint4 [stages * stage_quads]
constexpr int offset_low = offset_high + stages * stage_bytes;      // unsigned, likewise
constexpr int offset_scales = offset_low + stages * stage_quads * 4;  // float2 [stages][warps]
constexpr int offset_moments = offset_scales + stages * compute_warps * 8;  // float4 [2][warps]
constexpr int offset_norm = offset_moments + 2 * compute_warps * 16;        // float4 [2]
constexpr int offset_bars = offset_norm + 2 * 16;                           // full, done, moments, norm
constexpr int shared_bytes = offset_bars + (2 * ring + 2) * 8;
static_assert(shared_bytes <= 232448, "as in the plan");

constexpr unsigned long long sentinel = 0xffffffffffffffffull;
constexpr unsigned all_lanes = 0xffffffffu;

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

/// Every lane arrives for what it has read or written itself: compute-sanitizer's racecheck does not
/// follow an order that a __syncwarp makes.
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

__device__ __forceinline__ void bulk_load(unsigned to, const void* from, unsigned bytes,
                                          unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          to),
      "l"(from), "r"(bytes), "r"(bar)
      : "memory");
}

/// Writes a slot out and returns when the slot has been read (not: when y has been written).
__device__ __forceinline__ void bulk_store(void* to, unsigned from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void bulk_store_all_complete() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Makes this thread's writes to shared memory visible to bulk copies.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A load that stays where it is written, long before its use.
__device__ __forceinline__ float load_early(const float* from) {
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
  return value;
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
  // Halves of the distance between two such words: whole - below * 256 may overflow otherwise.
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

/// (x - first) * factor + offset is the normalised value times the weight's scale.
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

/// Mean and squared deviations of the whole warp from every lane's mean and squares of `count`.
__device__ __forceinline__ float2 warp_moments_of(float count, float mean, float squares) {
  const float whole = warp_sum(mean) * (1.0f / 32.0f);
  const float difference = mean - whole;
  const float all = warp_sum(fmaf(count * difference, difference, squares));
  return make_float2(whole, all);
}

/// Moments of the thread and the warp for the exchange warp; the mean is relative to the warp's
/// first element.
__device__ __forceinline__ void publish_warp(float4* warp_moments, unsigned moments_bar,
                                             unsigned buffer, int warp, int lane, float sum,
                                             float squares, float shift) {
  constexpr float count = 4.0f * stages * wide;
  const float local = sum * (1.0f / count);
  const float own = fmaxf(fmaf(-sum, local, squares), 0.0f);
  const float reference = __shfl_sync(all_lanes, shift, 0);
  const float2 of_warp = warp_moments_of(count, (shift - reference) + local, own);
  if (lane == 0) {
    warp_moments[buffer * compute_warps + warp] =
        make_float4(reference, of_warp.x, of_warp.y, 0.0f);
  }
  bar_arrive(moments_bar);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    layernorm(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ y,
              unsigned long long* slots) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned full_bars = shared + offset_bars;
  const unsigned done_bars = full_bars + 8 * ring;
  const unsigned moments_bar = done_bars + 8 * ring;
  const unsigned norm_bar = moments_bar + 8;

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int block = blockIdx.x;
  const int begin = block * stage_quads;
  float4* const warp_moments = reinterpret_cast<float4*>(memory + offset_moments);
  float4* const shared_norm = reinterpret_cast<float4*>(memory + offset_norm);

  if (thread == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full_bars + 8 * i, 1);
      bar_init(done_bars + 8 * i, compute_threads);
    }
    bar_init(moments_bar, compute_threads);
    bar_init(norm_bar, 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();

  if (thread >= compute_threads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));

    if (warp < exchange_warp) {
      // ---- movers: one lane each, taking the positions in turn ----
      if (lane == 0) {
        const int mover = warp - first_mover;
        const float4* const source = reinterpret_cast<const float4*>(x) + begin;
        float4* const target = reinterpret_cast<float4*>(y) + begin;
        const float4* const weights = reinterpret_cast<const float4*>(weight) + begin;
        const float4* const biases = reinterpret_cast<const float4*>(bias) + begin;
        const auto load = [&](int n) {
          const int slot = n % ring;
          const int of_x = n - parameter_positions;
          const float4* const from = of_x >= 0 ? source + of_x * stride
                                               : (n % 2 == 0 ? weights : biases) + n / 2 * stride;
          bar_expect(full_bars + 8 * slot, stage_bytes);
          bulk_load(shared + slot * stage_bytes, from, stage_bytes, full_bars + 8 * slot);
        };

        if (mover == 0) {
#pragma unroll 1
          for (int n = 0; n < ring; ++n) load(n);
        }

        // Where the previous position of a slot belongs to another mover, its phase is over: the
        // compute warps arrive in order, and this mover has seen a later position of theirs.
        static_assert(movers < ring, "as said");
#pragma unroll 1
        for (int n = mover; n < parameter_positions + positions; n += movers) {
          const int slot = n % ring;
          bar_wait(done_bars + 8 * slot, static_cast<unsigned>(n / ring) & 1u);
          const int written = n - (parameter_positions + written_from);
          if (written >= 0) {
            bulk_store(target + written * stride, shared + slot * stage_bytes, stage_bytes);
          }
          const int next = n + ring;
          if (next < parameter_positions + loads) {
            load(next);
          } else if (next < parameter_positions + positions) {
            bar_arrive(full_bars + 8 * slot);  // nothing comes any more, but the slot is free
          }
        }
        bulk_store_all_complete();
      }
    } else {
      // ---- exchange: merges the block's moments and publishes them; one block in every row
      // merges those of all blocks and publishes the result, for which the others wait quietly ----
      constexpr int per_lane = blocks / 32;
      constexpr float block_count = 4.0f * stages * stage_quads;
      const bool has = lane < compute_warps;
      // Before row 0 nothing is normalised.
      if (lane == 0) shared_norm[0] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      bar_arrive(norm_bar);
#pragma unroll 1
      for (int row = 0; row < problem::batch; ++row) {
        const unsigned buffer = static_cast<unsigned>(row) & 1u;
        unsigned long long* const row_slots = slots + row * blocks;
        unsigned long long* const row_results = slots + results_at + row * (copies * line_words);
        const float row_first = load_early(x + static_cast<long long>(row) * problem::features);
        bar_wait(moments_bar, buffer);
        __syncwarp();
        {
          // A warp's reference, mean relative to it, and squared deviations.
          constexpr float warp_count = block_count / compute_warps;
          const float4 m = has ? warp_moments[buffer * compute_warps + lane]
                               : make_float4(row_first, 0.0f, 0.0f, 0.0f);
          const float mean = (m.x - row_first) + m.y;
          const float of_block = warp_sum(mean) * (1.0f / compute_warps);
          const float difference = has ? mean - of_block : 0.0f;
          const float squares = warp_sum(fmaf(warp_count * difference, difference, m.z));
          if (lane == 0) {
            const unsigned long long packed =
                static_cast<unsigned long long>(__float_as_uint(of_block)) |
                (static_cast<unsigned long long>(__float_as_uint(squares)) << 32);
            asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(row_slots + block),
                         "l"(packed)
                         : "memory");
          }
        }
        __syncwarp();

        if (block == row * 8) {
          const unsigned long long* const words = row_slots + lane;
          unsigned long long got[per_lane];
          bool ready;
          do {
            ready = true;
#pragma unroll
            for (int i = 0; i < per_lane; ++i) {
              asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                           : "=l"(got[i])
                           : "l"(words + 32 * i)
                           : "memory");
            }
#pragma unroll
            for (int i = 0; i < per_lane; ++i) ready = ready && got[i] != sentinel;
          } while (!__all_sync(all_lanes, ready));

          float sum = 0.0f;
#pragma unroll
          for (int i = 0; i < per_lane; ++i) {
            sum += __uint_as_float(static_cast<unsigned>(got[i]));
          }
          const float mean = warp_sum(sum) * (1.0f / blocks);
          float deviations = 0.0f;
#pragma unroll
          for (int i = 0; i < per_lane; ++i) {
            const float difference = __uint_as_float(static_cast<unsigned>(got[i])) - mean;
            deviations += fmaf(block_count * difference, difference,
                               __uint_as_float(static_cast<unsigned>(got[i] >> 32)));
          }
          deviations = warp_sum(deviations);
          const float variance = deviations * (1.0f / problem::features);
          const float factor = 1.0f / sqrtf(variance + static_cast<float>(problem::eps));
          if (lane < copies) {
            const unsigned long long packed =
                static_cast<unsigned long long>(__float_as_uint(mean)) |
                (static_cast<unsigned long long>(__float_as_uint(factor)) << 32);
            asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(row_results + lane * line_words),
                         "l"(packed)
                         : "memory");
          }
          if (lane == 0) {
            shared_norm[buffer ^ 1u] = make_float4(row_first, factor, -mean * factor, 0.0f);
          }
        } else if (lane == 0) {
          const unsigned long long* const result = row_results + block % copies * line_words;
          unsigned long long got;
          while (true) {
            asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(got) : "l"(result) : "memory");
            if (got != sentinel) break;
            __nanosleep(20);
          }
          const float mean = __uint_as_float(static_cast<unsigned>(got));
          const float factor = __uint_as_float(static_cast<unsigned>(got >> 32));
          shared_norm[buffer ^ 1u] = make_float4(row_first, factor, -mean * factor, 0.0f);
        }
        __syncwarp();
        bar_arrive(norm_bar);
      }
    }
    return;
  }

  // ---- compute warps ----
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
  float4* const staged = reinterpret_cast<float4*>(memory) + thread;
  uint4* const high = reinterpret_cast<uint4*>(memory + offset_high) + thread;
  unsigned* const low = reinterpret_cast<unsigned*>(memory + offset_low) + thread;
  float2* const scales = reinterpret_cast<float2*>(memory + offset_scales) + warp;

  // Weight and bias, once: what a warp has of a stage shares a scale.
#pragma unroll 1
  for (int p = 0; p < stages; ++p) {
    const int slot = 2 * p % ring;
    const unsigned parity = 2 * p / ring & 1;
    float4 w[wide];
    float4 b[wide];
    bar_wait(full_bars + 8 * slot, parity);
#pragma unroll
    for (int i = 0; i < wide; ++i) w[i] = staged[slot * stage_quads + i * compute_threads];
    bar_wait(full_bars + 8 * (slot + 1), parity);
#pragma unroll
    for (int i = 0; i < wide; ++i) b[i] = staged[(slot + 1) * stage_quads + i * compute_threads];
    bar_arrive(done_bars + 8 * slot);
    bar_arrive(done_bars + 8 * (slot + 1));
    float largest_weight = 0.0f;
    float largest_bias = 0.0f;
#pragma unroll
    for (int i = 0; i < wide; ++i) {
      largest_weight = larger(largest_weight, w[i]);
      largest_bias = larger(largest_bias, b[i]);
    }
    const float2 scale =
        make_float2(scale_of(warp_larger(largest_weight)), scale_of(warp_larger(largest_bias)));
    const float weight_inverse = inverse_of(scale.x);
    const float bias_inverse = inverse_of(scale.y);
#pragma unroll
    for (int i = 0; i < wide; ++i) {
      const Packed both = pack(w[i], weight_inverse, b[i], bias_inverse);
      high[p * stage_quads + i * compute_threads] = both.high;
      low[p * stage_quads + i * compute_threads] = both.low;
    }
    if (lane == 0) scales[p * compute_warps] = scale;
  }
  __syncwarp();

  float4 held[stages][wide];  // the row being normalised
  float4 ahead[lead][wide];   // the stages of the next row that follow those that are in held
  float sum = 0.0f;           // of the row that is being summed
  float squares = 0.0f;
  float shift = 0.0f;  // the thread's first element of it
#pragma unroll
  for (int p = 0; p < stages; ++p) {
#pragma unroll
    for (int i = 0; i < wide; ++i) held[p][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }

  // Sums stage `stage` of row `of_row`, which lies in `slot` of the ring.
  const auto sum_up = [&](int slot, int stage, int of_row) {
#pragma unroll
    for (int i = 0; i < wide; ++i) {
      const float4 v = staged[slot * stage_quads + i * compute_threads];
      if (stage == 0 && i == 0) {
        shift = v.x;
        sum = 0.0f;
        squares = 0.0f;
      }
      add(v, shift, sum, squares);
    }
    if (stage == stages - 1) {
      publish_warp(warp_moments, moments_bar, static_cast<unsigned>(of_row) & 1u, warp, lane, sum,
                   squares, shift);
    }
  };

  // The lead of row 0 arrives, and what follows is summed.
#pragma unroll
  for (int position = -peek; position < lead; ++position) {
    const int summed = position + peek;
    bar_wait(full_bars + 8 * (summed % ring), (summed / ring) & 1);
    sum_up(summed % ring, summed, 0);
    if (position >= 0) {
#pragma unroll
      for (int i = 0; i < wide; ++i) {
        ahead[position][i] = staged[position % ring * stage_quads + i * compute_threads];
      }
      bar_arrive(done_bars + 8 * (position % ring));
    }
  }

  // Before row 0 nothing is finished, while row 0 comes into held.
#pragma unroll 1
  for (int row = -1; row < problem::batch; ++row) {
    // held: row, and from its start on the stages of row + 1 instead; ahead: the `lead` stages that
    // follow those. Arriving: the rest of row + 1, then the first stages of row + 2.
    const unsigned phase = static_cast<unsigned>(row + 1) & 1u;
    bar_wait(norm_bar, phase);
    const float4 norm = shared_norm[phase];

#pragma unroll
    for (int p = 0; p < stages; ++p) {
      const float2 scale = scales[p * compute_warps];
      const Norm scaled = {norm.x, norm.y * scale.x, norm.z * scale.x};
      float4 finished[wide];
#pragma unroll
      for (int i = 0; i < wide; ++i) {
        const int at = p * stage_quads + i * compute_threads;
        finished[i] = normalised(held[p][i], scaled, scale.y, high[at], low[at]);
      }

      // A stage of row + 1 or of row + 2 is summed; another, `peek` stages before it, leaves the
      // ring and what is finished takes its place there. After the last row the slots come free
      // without a copy.
      const int summed = p + lead + peek;  // in the ring's order, from the start of row + 1
      const int of_row = row + 1 + summed / stages;
      if (row + 1 < problem::batch || summed < stages + lead) {
        bar_wait(full_bars + 8 * (summed % ring), (summed / ring) & 1);
      }
      if (of_row < problem::batch) sum_up(summed % ring, summed % stages, of_row);
      const int slot = (p + lead) % ring;
#pragma unroll
      for (int i = 0; i < wide; ++i) {
        // Stage p of row + 1, which came `lead` steps ago, takes its place.
        held[p][i] = ahead[p % lead][i];
        float4* const place = staged + slot * stage_quads + i * compute_threads;
        ahead[p % lead][i] = *place;  // after the last row: unused
        *place = finished[i];
      }
      fence_async();
      bar_arrive(done_bars + 8 * slot);
    }

    // The next row's step p looks for its stage in place p % lead again.
    float4 turned[lead][wide];
#pragma unroll
    for (int i = 0; i < lead; ++i) {
#pragma unroll
      for (int j = 0; j < wide; ++j) turned[i][j] = ahead[(i + stages) % lead][j];
    }
#pragma unroll
    for (int i = 0; i < lead; ++i) {
#pragma unroll
      for (int j = 0; j < wide; ++j) ahead[i][j] = turned[i][j];
    }
  }
}
