// Layer normalisation over rows of 4194304 floats; x, weight and bias are read exactly once. Every
// block owns a fixed slice of the features: its weight and bias stay in shared memory, rounded to
// 24 bits, the row being normalised stays in registers, and a ring of bulk copies brings the next.

#include "problem.h"

namespace {

constexpr int blocks = 132;
constexpr int compute_warps = 15;
constexpr int compute_threads = compute_warps * 32;
constexpr int threads = compute_threads + 32;  // one more warp issues the bulk copies
constexpr int full_stages = 16;                // full stages of a row's slice
constexpr int stages = full_stages + 1;        // and the tail
constexpr int stage_quads = compute_threads;
constexpr int stage_bytes = stage_quads * 16;
constexpr int full_quads = full_stages * stage_quads;
constexpr int row_quads = problem::features / 4;
constexpr int long_tail = 264;
constexpr int short_tail = 256;
constexpr int long_blocks = 128;
static_assert(long_blocks * (full_quads + long_tail) +
                      (blocks - long_blocks) * (full_quads + short_tail) ==
                  row_quads,
              "the slices make up a row");
constexpr int max_quads = full_quads + long_tail;
constexpr int ring = 5;

constexpr int offset_wide = ring * stage_bytes;                // uint4 [max_quads]
constexpr int offset_narrow = offset_wide + max_quads * 16;    // uint2 [max_quads]
constexpr int offset_bars = offset_narrow + max_quads * 8;
constexpr int offset_moments = offset_bars + 2 * ring * 8;     // float2 [compute_warps]
constexpr int offset_norm = offset_moments + (compute_warps + 1) * 8;  // float4
constexpr int shared_bytes = offset_norm + 16;
static_assert(offset_bars % 16 == 0 && offset_moments % 16 == 0 && offset_norm % 16 == 0,
              "alignment");
static_assert(shared_bytes <= 229376, "as in the plan");

constexpr unsigned long long sentinel = 0xffffffffffffffffull;

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
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

__device__ __forceinline__ void bulk_copy(unsigned to, const void* from, unsigned bytes,
                                          unsigned bar, unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(bar), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void compute_sync() {
  asm volatile("bar.sync 1, 480;" ::: "memory");
}
static_assert(compute_threads == 480, "as in compute_sync");

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    v += __shfl_xor_sync(0xffffffffu, v, distance);
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

/// The upper 24 bits of a float, rounded to nearest; the lowest byte is zero.
__device__ __forceinline__ unsigned rounded(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) {  // infinite or not a number
    const unsigned quiet = (bits & 0x007fffffu) != 0u ? 0x00400000u : 0u;
    return (bits | quiet) & 0xffffff00u;
  }
  return (bits + 0x80u) & 0xffffff00u;
}

/// Eight values in 24 bytes: six words hold one each, and in their low bytes the other two.
__device__ __forceinline__ void pack(const float4& w, const float4& b, uint4& wide,
                                     uint2& narrow) {
  const unsigned s = rounded(b.z);
  const unsigned t = rounded(b.w);
  wide.x = rounded(w.x) | ((s >> 8) & 0xffu);
  wide.y = rounded(w.y) | ((s >> 16) & 0xffu);
  wide.z = rounded(w.z) | (s >> 24);
  wide.w = rounded(w.w) | ((t >> 8) & 0xffu);
  narrow.x = rounded(b.x) | ((t >> 16) & 0xffu);
  narrow.y = rounded(b.y) | (t >> 24);
}

__device__ __forceinline__ float upper(unsigned word) {
  return __uint_as_float(word & 0xffffff00u);
}

/// The value whose bytes 1, 2 and 3 are the lowest bytes of three words.
__device__ __forceinline__ float gathered(unsigned a, unsigned b, unsigned c) {
  const unsigned low = __byte_perm(a, b, 0x0400);
  return upper(__byte_perm(low, c, 0x4210));
}

/// (x - first) * factor + offset is the normalised value.
struct Norm {
  float first;
  float factor;
  float offset;
};

__device__ __forceinline__ float4 normalised(const float4& x, const Norm& n, const uint4& wide,
                                             const uint2& narrow) {
  float4 r;
  r.x = fmaf(fmaf(x.x - n.first, n.factor, n.offset), upper(wide.x), upper(narrow.x));
  r.y = fmaf(fmaf(x.y - n.first, n.factor, n.offset), upper(wide.y), upper(narrow.y));
  r.z = fmaf(fmaf(x.z - n.first, n.factor, n.offset), upper(wide.z),
             gathered(wide.x, wide.y, wide.z));
  r.w = fmaf(fmaf(x.w - n.first, n.factor, n.offset), upper(wide.w),
             gathered(wide.w, narrow.x, narrow.y));
  return r;
}

__device__ __forceinline__ int tail_of(int block) {
  return block < long_blocks ? long_tail : short_tail;
}

__device__ __forceinline__ float warp_count(int warp, int tail) {
  return static_cast<float>(32 * 4 * full_stages + 4 * min(max(tail - 32 * warp, 0), 32));
}

/// Mean and squared deviations of the whole warp from every lane's count, mean and squares.
__device__ __forceinline__ float2 warp_moments_of(float count, float mean, float squares,
                                                  float total_count) {
  const float whole = warp_sum(count * mean) / total_count;
  const float difference = mean - whole;
  const float all = warp_sum(fmaf(count * difference, difference, squares));
  return make_float2(whole, all);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    layernorm(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ y,
              unsigned long long* slots) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned full_bars = shared + offset_bars;
  const unsigned empty_bars = full_bars + 8 * ring;

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int block = blockIdx.x;
  const int tail = tail_of(block);
  const int begin = block * (full_quads + long_tail) -
                    max(block - long_blocks, 0) * (long_tail - short_tail);

  if (thread == 0) {
    for (int i = 0; i < ring; ++i) {
      bar_init(full_bars + 8 * i, 1);
      bar_init(empty_bars + 8 * i, compute_warps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();

  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));

  if (warp == compute_warps) {
    // ---- producer ----
    if (lane == 0) {
      const float4* source = reinterpret_cast<const float4*>(x) + begin;
      int slot = 0;
      unsigned parity = 1;  // the first wait on a fresh barrier passes
      for (int row = 0; row < problem::batch; ++row) {
        for (int p = 0; p < stages; ++p) {
          const unsigned bytes = p < full_stages ? stage_bytes : tail * 16;
          bar_wait(empty_bars + 8 * slot, parity);
          bar_expect(full_bars + 8 * slot, bytes);
          bulk_copy(shared + slot * stage_bytes,
                    source + static_cast<long long>(row) * row_quads + p * stage_quads, bytes,
                    full_bars + 8 * slot, policy);
          if (++slot == ring) {
            slot = 0;
            parity ^= 1u;
          }
        }
      }
    }
    return;
  }

  // ---- compute warps ----
  const float4* const staged = reinterpret_cast<const float4*>(memory) + thread;
  uint4* const wide = reinterpret_cast<uint4*>(memory + offset_wide) + thread;
  uint2* const narrow = reinterpret_cast<uint2*>(memory + offset_narrow) + thread;
  float2* const warp_moments = reinterpret_cast<float2*>(memory + offset_moments);
  float4* const shared_norm = reinterpret_cast<float4*>(memory + offset_norm);
  const bool in_tail = thread < tail;

  // Weight and bias, once. A thread touches only its own column of them in shared memory.
  {
    const float4* weights = reinterpret_cast<const float4*>(weight) + begin + thread;
    const float4* biases = reinterpret_cast<const float4*>(bias) + begin + thread;
    constexpr int together = 4;
    static_assert(full_stages % together == 0, "whole groups");
#pragma unroll 1
    for (int p = 0; p < full_stages; p += together) {
      float4 w[together];
      float4 b[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        w[i] = __ldcs(weights + (p + i) * stage_quads);
        b[i] = __ldcs(biases + (p + i) * stage_quads);
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        uint4 first;
        uint2 second;
        pack(w[i], b[i], first, second);
        wide[(p + i) * stage_quads] = first;
        narrow[(p + i) * stage_quads] = second;
      }
    }
    if (in_tail) {
      uint4 first;
      uint2 second;
      pack(__ldcs(weights + full_quads), __ldcs(biases + full_quads), first, second);
      wide[full_quads] = first;
      narrow[full_quads] = second;
    }
  }

  float4 held[stages];
#pragma unroll
  for (int p = 0; p < stages; ++p) held[p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4* to = reinterpret_cast<float4*>(y) + begin + thread;
  float sum = 0.0f;
  float squares = 0.0f;
  float row_first = 0.0f;  // of the row that is held
  int slot = 0;
  unsigned parity = 0;

#pragma unroll 1
  for (int row = -1; row < problem::batch; ++row) {
    const bool normalising = row >= 0;
    const bool more = row + 1 < problem::batch;
    Norm norm = {0.0f, 0.0f, 0.0f};

    if (normalising) {
      // Moments of the thread, the warp, the block, the grid; means relative to the row's first.
      {
        const float count = in_tail ? 4.0f * stages : 4.0f * full_stages;
        const float local = sum / count;
        const float own = fmaxf(fmaf(-sum, local, squares), 0.0f);
        const float2 of_warp = warp_moments_of(count, (held[0].x - row_first) + local, own,
                                               warp_count(warp, tail));
        if (lane == 0) warp_moments[warp] = of_warp;
      }
      compute_sync();
      if (warp == 0) {
        unsigned long long* row_slots = slots + row * blocks;
        {
          const bool has = lane < compute_warps;
          const float2 m = has ? warp_moments[lane] : make_float2(0.0f, 0.0f);
          const float2 of_block = warp_moments_of(has ? warp_count(lane, tail) : 0.0f, m.x, m.y,
                                                  static_cast<float>(4 * (full_quads + tail)));
          if (lane == 0) {
            const unsigned long long packed =
                static_cast<unsigned long long>(__float_as_uint(of_block.x)) |
                (static_cast<unsigned long long>(__float_as_uint(of_block.y)) << 32);
            asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(row_slots + block),
                         "l"(packed)
                         : "memory");
          }
        }
        __syncwarp();
        constexpr int per_lane = (blocks + 31) / 32;
        unsigned long long got[per_lane];
        bool ready;
        do {
#pragma unroll
          for (int i = 0; i < per_lane; ++i) {
            const int other = lane + 32 * i < blocks ? lane + 32 * i : lane;
            asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                         : "=l"(got[i])
                         : "l"(row_slots + other)
                         : "memory");
          }
          ready = true;
#pragma unroll
          for (int i = 0; i < per_lane; ++i) ready = ready && got[i] != sentinel;
        } while (!ready);
        __syncwarp();
        float weighted = 0.0f;
#pragma unroll
        for (int i = 0; i < per_lane; ++i) {
          const int other = lane + 32 * i;
          if (other < blocks) {
            const float count = static_cast<float>(4 * (full_quads + tail_of(other)));
            weighted = fmaf(count, __uint_as_float(static_cast<unsigned>(got[i])), weighted);
          }
        }
        const float mean = warp_sum(weighted) * (1.0f / problem::features);
        float deviations = 0.0f;
#pragma unroll
        for (int i = 0; i < per_lane; ++i) {
          const int other = lane + 32 * i;
          if (other < blocks) {
            const float count = static_cast<float>(4 * (full_quads + tail_of(other)));
            const float difference = __uint_as_float(static_cast<unsigned>(got[i])) - mean;
            deviations += fmaf(count * difference, difference,
                               __uint_as_float(static_cast<unsigned>(got[i] >> 32)));
          }
        }
        deviations = warp_sum(deviations);
        if (lane == 0) {
          const float variance = deviations * (1.0f / problem::features);
          const float factor = 1.0f / sqrtf(variance + static_cast<float>(problem::eps));
          *shared_norm = make_float4(row_first, factor, -mean * factor, 0.0f);
        }
        __syncwarp();
      }
      compute_sync();
      const float4 n = *shared_norm;
      norm = {n.x, n.y, n.z};
    }

    if (more) row_first = __ldg(x + static_cast<long long>(row + 1) * problem::features);
    sum = 0.0f;
    squares = 0.0f;
#pragma unroll
    for (int p = 0; p < stages; ++p) {
      if (normalising) {
        if (p < full_stages || in_tail) {
          const uint4 first = wide[p * stage_quads];
          const uint2 second = narrow[p * stage_quads];
          __stcs(to + p * stage_quads, normalised(held[p], norm, first, second));
        }
      }
      if (more) {
        bar_wait(full_bars + 8 * slot, parity);
        if (p < full_stages || in_tail) held[p] = staged[slot * stage_quads];
        __syncwarp();
        if (lane == 0) bar_arrive(empty_bars + 8 * slot);
        if (p < full_stages || in_tail) add(held[p], held[0].x, sum, squares);
        if (++slot == ring) {
          slot = 0;
          parity ^= 1u;
        }
      }
    }
    if (normalising) to += row_quads;
  }
}
