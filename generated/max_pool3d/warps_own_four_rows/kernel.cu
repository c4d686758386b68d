#include "problem.h"

// The kernel for the problem's own sizes. Inside this namespace `problem` means these
// constants, whatever problem.h says, so that it compiles at any size.
namespace own_sizes {

namespace problem {
inline constexpr int batch = 4;
inline constexpr int channels = 32;
inline constexpr int depth = 128;
inline constexpr int height = 128;
inline constexpr int width = 128;
inline constexpr int kernel = 3;
inline constexpr int stride = 2;
inline constexpr int padding = 1;
inline constexpr int dilation = 3;
inline constexpr int out_depth = 62;
inline constexpr int out_height = 62;
inline constexpr int out_width = 62;
inline constexpr int x_elements = 268435456;
inline constexpr int y_elements = 30505984;
}  // namespace problem

#ifndef KEEP_PERCENT
#define KEEP_PERCENT 25
#endif
#ifndef LONG_RUN
#define LONG_RUN 4
#endif
#ifndef LONG_GROUPS
#define LONG_GROUPS 36
#endif
#ifndef MID_RUN
#define MID_RUN 2
#endif
#ifndef MID_GROUPS
#define MID_GROUPS 34
#endif
#ifndef ONE_GROUPS
#define ONE_GROUPS 80
#endif

// Tickets of the pool. It is zero before and after every run: each run makes exactly
// kClaims claims, and the counter wraps at that.
__device__ unsigned int next_ticket = 0;

namespace {

constexpr int kRowBytes = 512;
constexpr int kSlotRows = 16;
constexpr int kPieces = 8;                            // pieces of a plane
constexpr int kSlotBytes = kSlotRows * kRowBytes;     // 8192
constexpr int kSlots = 28;                            // 3.5 planes
constexpr int kRingBytes = kSlots * kSlotBytes;       // 229376
constexpr int kPlaneBytes = kPieces * kSlotBytes;     // 65536: row r at place r
constexpr int kSplitBase = 24 * kSlotBytes;           // a plane that begins here wraps halfway
constexpr int kBarAt = kRingBytes;
constexpr int kBars = 4 * kPieces;                    // 32 full, then 32 empty
constexpr int kListAt = kBarAt + 2 * kBars * 8;       // 229888
constexpr int kConsumers = 16;
constexpr int kThreads = (kConsumers + 1) * 32;       // 544
constexpr int kGroups = 44;                           // of three blocks
constexpr int kBlocks = 3 * kGroups;
constexpr int kItems = problem::batch * problem::channels * 62;
constexpr int kPlane = problem::height * problem::width;
constexpr int kOutPlane = 62 * 62;

// The pool: groups of three runs; a run takes every third output of its group.
constexpr int kLongRuns = 3 * LONG_GROUPS;
constexpr int kMidRuns = 3 * MID_GROUPS;
constexpr int kOneRuns = 3 * ONE_GROUPS;
constexpr int kRuns = kLongRuns + kMidRuns + kOneRuns;
constexpr int kPoolItems = kLongRuns * LONG_RUN + kMidRuns * MID_RUN + kOneRuns;
constexpr int kStatic = kItems - kPoolItems;
constexpr unsigned kClaims = kRuns + kBlocks;         // one failing claim for each block

static_assert(kStatic >= 6 * kBlocks, "pool too large");
static_assert(kListAt + 4 * (kRuns + 1) <= 231696, "shared memory of the plan");
static_assert(kSplitBase + 4 * kSlotBytes == kRingBytes, "ring");
static_assert(problem::depth == 128 && problem::height == 128 && problem::width == 128, "shape");
static_assert(problem::kernel == 3 && problem::stride == 2 && problem::padding == 1 &&
              problem::dilation == 3, "window");
static_assert(problem::out_depth == 62 && problem::out_height == 62 && problem::out_width == 62,
              "output");

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float4 max4(const float4& a, const float4& b) {
  float4 r;
  r.x = max_nan(a.x, b.x);
  r.y = max_nan(a.y, b.y);
  r.z = max_nan(a.z, b.z);
  r.w = max_nan(a.w, b.w);
  return r;
}

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_arrive(unsigned bar) {
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(bar)
               : "memory");
}

__device__ __forceinline__ void bar_expect(unsigned bar, unsigned bytes) {
  asm volatile(
      "{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t}" ::"r"(bar),
      "r"(bytes)
      : "memory");
}

__device__ __forceinline__ void bar_wait(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void bulk_load(unsigned dst, const float* src, unsigned bytes,
                                          unsigned bar, unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar), "l"(policy)
      : "memory");
}

__device__ __forceinline__ unsigned list_read(unsigned at) {
  unsigned r;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(r) : "r"(at) : "memory");
  return r;
}

__device__ __forceinline__ void list_write(unsigned at, unsigned value) {
  asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

__device__ __forceinline__ void store4(float* to, const float4& v, unsigned long long policy) {
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w), "l"(policy)
               : "memory");
}

// The run of a ticket: `length` outputs from o, three apart, up or down. Even groups go
// down and odd ones up, so that neighbours begin or end at a common plane.
__device__ __forceinline__ void decode(int ticket, int& o, int& length, bool& up) {
  int t = ticket;
  int base = kStatic;
  int n = LONG_RUN;
  if (ticket >= kLongRuns + kMidRuns) {
    t = ticket - (kLongRuns + kMidRuns);
    base = kStatic + kLongRuns * LONG_RUN + kMidRuns * MID_RUN;
    n = 1;
  } else if (ticket >= kLongRuns) {
    t = ticket - kLongRuns;
    base = kStatic + kLongRuns * LONG_RUN;
    n = MID_RUN;
  }
  const int group = t / 3;
  const int member = t - 3 * group;
  up = (group & 1) != 0;
  o = base + group * 3 * n + member + (up ? 0 : 3 * (n - 1));
  length = n;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    pool_sweeps(const float* __restrict__ x, float* __restrict__ y) {
  extern __shared__ __align__(128) unsigned char smem[];
  const unsigned smem_at = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  const unsigned full = smem_at + kBarAt;
  const unsigned empty = full + 8 * kBars;
  const unsigned list = smem_at + kListAt;

  const int warp = threadIdx.x >> 5;
  const int lane = threadIdx.x & 31;

  // The static share. A group of three blocks sweeps a contiguous range of outputs
  // o = 62 v + d; each of its blocks takes every third one, up or down.
  const int group = static_cast<int>(blockIdx.x) / 3;
  const int member = static_cast<int>(blockIdx.x) - 3 * group;
  const int begin = group * kStatic / kGroups;
  const int end = (group + 1) * kStatic / kGroups;
  bool up = (group & 1) != 0;
  int length = (end - begin - member + 2) / 3;
  int o = up ? begin + member : end - 1 - member;

  if (threadIdx.x < 2 * kBars) {
    // Pieces 0 and 7 have three reading warps, the others four.
    const int q = static_cast<int>(threadIdx.x) % kPieces;
    const unsigned users = (q == 0 || q == kPieces - 1) ? 3u : 4u;
    bar_init(full + 8 * threadIdx.x, threadIdx.x < kBars ? 1u : users);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  for (int i = threadIdx.x; i <= kRuns; i += kThreads) list_write(list + 4 * i, 0u);
  __syncthreads();

  // Piece q of the n-th plane of this block's stream is in slot (8 n + q) mod 28; its
  // barriers are number 8 (n mod 4) + q, phase n / 4, so that each barrier always
  // belongs to the same eighth of a plane and has the same users.

  if (warp == kConsumers) {
    // ---------------------------------------------------------------- loads
    if (lane == 0) {
      unsigned long long stream_policy, shared_policy;
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(stream_policy));
      asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(shared_policy));

      unsigned n = 0;
      int base = 0;
      auto load = [&](const float* plane, unsigned long long policy) {
        const unsigned f = full + (n & 3u) * (8 * kPieces);
        // What was in these slots: pieces 4..7 of plane n - 4, then 0..3 of plane n - 3.
        const unsigned before_a = empty + (n & 3u) * (8 * kPieces);
        const unsigned parity_a = ((n >> 2) - 1u) & 1u;
        const unsigned before_b = empty + ((n + 1u) & 3u) * (8 * kPieces);
        const unsigned parity_b = ((n - 3u) >> 2) & 1u;
        const int base_b = base == kSplitBase ? base - kRingBytes : base;
#pragma unroll
        for (int q = 0; q < kPieces; ++q) {
          if (q < 4) {
            bar_wait(before_a + 8 * (q + 4), parity_a);
          } else {
            bar_wait(before_b + 8 * (q - 4), parity_b);
          }
          const unsigned dst = smem_at + static_cast<unsigned>((q < 4 ? base : base_b) + q * kSlotBytes);
          const float* src = plane + q * kSlotRows * 128;
          if (q == 0) {
            // rows 1..15
            bar_expect(f, kSlotBytes - kRowBytes);
            bulk_load(dst + kRowBytes, src + 128, kSlotBytes - kRowBytes, f, policy);
          } else if (q < kPieces - 1) {
            bar_expect(f + 8 * q, kSlotBytes);
            bulk_load(dst, src, kSlotBytes, f + 8 * q, policy);
          } else {
            // rows 112..125, and 127
            bar_expect(f + 8 * q, kSlotBytes - kRowBytes);
            bulk_load(dst, src, kSlotBytes - 2 * kRowBytes, f + 8 * q, policy);
            bulk_load(dst + (kSlotBytes - kRowBytes), plane + 127 * 128, kRowBytes, f + 8 * q,
                      policy);
          }
        }
        ++n;
        base += kPlaneBytes;
        if (base >= kRingBytes) base -= kRingBytes;
      };

      unsigned entry = list;
#pragma unroll 1
      for (;;) {
        const int step = up ? 3 : -3;
        const int away = up ? 3 * kPlane : -3 * kPlane;   // towards the plane that is carried on
        unsigned ticket = 0;
#pragma unroll 1
        for (int i = 0; i < length; ++i, o += step) {
          const int v = o / 62;
          const int d = o - 62 * v;
          const float* middle = x + (1ll * v * problem::depth + 2 * d + 2) * kPlane;
          const bool start = i == 0 || (up ? d < 3 : d >= 59);
          const bool has_first = !up || d > 0;
          const bool has_last = up || d > 0;
          const bool ending = i == length - 1;
          // The first and the last plane of a run are also needed by its neighbours.
          if (start && has_first) load(middle - away, i == 0 ? shared_policy : stream_policy);
          load(middle, stream_policy);
          if (ending) ticket = atomicInc(&next_ticket, kClaims - 1u);
          if (has_last) load(middle + away, ending ? shared_policy : stream_policy);
        }
        list_write(entry, ticket + 1u);
        entry += 4;
        if (ticket >= static_cast<unsigned>(kRuns)) break;
        decode(static_cast<int>(ticket), o, length, up);
      }
    }
  } else {
    // ------------------------------------------------------------ consumers
    // Outputs h = 4 warp .. 4 warp + 3 (the last warp: 60 and 61) use the rows
    // 8 warp - 1, 8 warp + 1 .. 8 warp + 9 and 8 warp + 11.
    const bool last = warp == kConsumers - 1;
    const int row0 = 8 * warp;
    // These rows lie in pieces (warp - 1) / 2 and the next one (first and last warp: one).
    const int piece_a = warp == 0 ? 0 : (warp - 1) >> 1;
    const bool two = warp > 0 && !last;
    // The ring may wrap between the halves of a plane: which rows are in the first half.
    const bool low_in_a = warp <= 8;          // row row0 - 1
    const bool mid_in_a = warp <= 7;          // rows row0 + 1 .. row0 + 7
    const bool high_in_a = warp <= 6;         // rows row0 + 8, + 9, + 11

    // Row r lies at place r. Row -1 is replaced by row 2 of the same window, which changes
    // no maximum; rows of outputs that do not exist by any others.
    const int at_mid = row0 * kRowBytes + lane * 16;
    const int at_low = warp == 0 ? at_mid + 2 * kRowBytes : at_mid - kRowBytes;
    const int at_6 = last ? at_mid + 5 * kRowBytes : at_mid + 6 * kRowBytes;
    const int at_high = last ? at_mid + kRowBytes : at_mid + 8 * kRowBytes;

    const unsigned full_a = full + 8 * piece_a;
    const unsigned empty_a = empty + 8 * piece_a;

    unsigned n = 0;
    int base = 0;
    auto read_plane = [&](float4& o0, float4& o1, float4& o2, float4& o3) {
      const unsigned bar = (n & 3u) * (8 * kPieces);
      const unsigned parity = (n >> 2) & 1u;
      bar_wait(full_a + bar, parity);
      if (two) bar_wait(full_a + bar + 8, parity);
      const int base_b = base == kSplitBase ? base - kRingBytes : base;
      const unsigned char* low = smem + ((low_in_a ? base : base_b) + at_low);
      const int mid_base = mid_in_a ? base : base_b;
      const unsigned char* mid = smem + (mid_base + at_mid);
      const unsigned char* six = smem + (mid_base + at_6);
      const unsigned char* high = smem + ((high_in_a ? base : base_b) + at_high);
      const float4 rm = *reinterpret_cast<const float4*>(low);
      const float4 r1 = *reinterpret_cast<const float4*>(mid + 1 * kRowBytes);
      const float4 r2 = *reinterpret_cast<const float4*>(mid + 2 * kRowBytes);
      const float4 r3 = *reinterpret_cast<const float4*>(mid + 3 * kRowBytes);
      const float4 r4 = *reinterpret_cast<const float4*>(mid + 4 * kRowBytes);
      const float4 r5 = *reinterpret_cast<const float4*>(mid + 5 * kRowBytes);
      const float4 r6 = *reinterpret_cast<const float4*>(six);
      const float4 r7 = *reinterpret_cast<const float4*>(mid + 7 * kRowBytes);
      const float4 r8 = *reinterpret_cast<const float4*>(high);
      const float4 r9 = *reinterpret_cast<const float4*>(high + 1 * kRowBytes);
      const float4 r11 = *reinterpret_cast<const float4*>(high + 3 * kRowBytes);
      o0 = max4(max4(rm, r2), r5);
      o1 = max4(max4(r1, r4), r7);
      o2 = max4(max4(r3, r6), r9);
      o3 = max4(max4(r5, r8), r11);
      __syncwarp();
      if (lane == 0) {
        bar_arrive(empty_a + bar);
        if (two) bar_arrive(empty_a + bar + 8);
      }
      ++n;
      base += kPlaneBytes;
      if (base >= kRingBytes) base -= kRingBytes;
    };

    auto reduce_row = [&](const float4& a) {
      const float xw = max_nan(a.x, a.w);
      const float up_w = __shfl_up_sync(0xffffffffu, a.w, 1);
      const float down_y = __shfl_down_sync(0xffffffffu, a.y, 1);
      const float down_xw = __shfl_down_sync(0xffffffffu, xw, 1);
      float2 r;
      // w = 2 lane: elements 4 lane - 1, + 2, + 5; element -1 does not count.
      r.x = max_nan(max_nan(lane == 0 ? a.z : up_w, a.z), down_y);
      // w = 2 lane + 1: elements 4 lane + 1, + 4, + 7.
      r.y = max_nan(a.y, down_xw);
      return r;
    };

    // Two neighbouring rows are 62 float2, number 31 row + lane; lane j < 31 gets numbers
    // 2 j and 2 j + 1. Even numbers come from even lanes of the upper row or odd lanes of
    // the lower one, odd numbers from odd lanes of the upper row or even lanes of the lower.
    const bool odd = (lane & 1) != 0;
    const int from_even = lane < 16 ? 2 * lane : 2 * lane - 31;
    const int from_odd = (lane < 15 ? 2 * lane + 1 : 2 * lane - 30) & 31;
    auto pack = [&](const float2& upper, const float2& lower) {
      const float ex = odd ? lower.x : upper.x;
      const float ey = odd ? lower.y : upper.y;
      const float fx = odd ? upper.x : lower.x;
      const float fy = odd ? upper.y : lower.y;
      float4 r;
      r.x = __shfl_sync(0xffffffffu, ex, from_even);
      r.y = __shfl_sync(0xffffffffu, ey, from_even);
      r.z = __shfl_sync(0xffffffffu, fx, from_odd);
      r.w = __shfl_sync(0xffffffffu, fy, from_odd);
      return r;
    };

    unsigned long long early_policy, late_policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(early_policy));
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(late_policy));
    int early = length - length * KEEP_PERCENT / 100;

    const float lowest = __int_as_float(static_cast<int>(0xff800000u));
    const float4 low4 = make_float4(lowest, lowest, lowest, lowest);
    float4 c0 = low4, c1 = low4, c2 = low4, c3 = low4;

    float* const out_base = y + warp * (4 * 62) + lane * 4;
    unsigned entry = list;
#pragma unroll 1
    for (;;) {
      const int step = up ? 3 : -3;
#pragma unroll 1
      for (int i = 0; i < length; ++i, o += step) {
        const int v = o / 62;
        const int d = o - 62 * v;
        const bool start = i == 0 || (up ? d < 3 : d >= 59);
        const bool has_first = !up || d > 0;
        const bool has_last = up || d > 0;
        if (start) {
          if (has_first) {
            read_plane(c0, c1, c2, c3);
          } else {
            c0 = low4;
            c1 = low4;
            c2 = low4;
            c3 = low4;
          }
        }
        float4 a0, a1, a2, a3;
        read_plane(a0, a1, a2, a3);
        a0 = max4(a0, c0);
        a1 = max4(a1, c1);
        a2 = max4(a2, c2);
        a3 = max4(a3, c3);
        // Downwards, d = 0 has no third plane; what follows then is the start of a chain.
        if (has_last) {
          read_plane(c0, c1, c2, c3);
          a0 = max4(a0, c0);
          a1 = max4(a1, c1);
          a2 = max4(a2, c2);
          a3 = max4(a3, c3);
        }

        const float2 y0 = reduce_row(a0);
        const float2 y1 = reduce_row(a1);
        const float2 y2 = reduce_row(a2);
        const float2 y3 = reduce_row(a3);
        const float4 top = pack(y0, y1);
        const float4 bottom = pack(y2, y3);

        const unsigned long long policy = i < early ? early_policy : late_policy;
        float* out = out_base + 1ll * o * kOutPlane;
        if (lane < 31) {
          store4(out, top, policy);
          if (!last) store4(out + 2 * 62, bottom, policy);
        }
      }

      // The next run: its ticket plus one, or more than kRuns when the pool is empty.
      unsigned ticket;
      do {
        ticket = list_read(entry);
      } while (ticket == 0);
      __syncwarp();
      entry += 4;
      if (ticket > static_cast<unsigned>(kRuns)) break;
      decode(static_cast<int>(ticket) - 1, o, length, up);
      early = 0;
    }
  }
}

}  // namespace own_sizes

// ------------------------------------------------------------------ all other sizes
// One thread per output in a grid-stride loop. Here `problem` is what problem.h says.
namespace any_size {

constexpr int kBlockThreads = 256;

constexpr long long kOutputs = 1ll * problem::batch * problem::channels * problem::out_depth *
                               problem::out_height * problem::out_width;

// Indices of outputs have 32 bits where these cannot overflow, the step of the loop included.
template <bool fits>
struct IndexOf {
  using type = unsigned long long;
};
template <>
struct IndexOf<true> {
  using type = unsigned int;
};
using Index = IndexOf<(kOutputs <= 0x7fffffffll)>::type;

__device__ __forceinline__ float larger(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

}  // namespace any_size

extern "C" __global__ void __launch_bounds__(any_size::kBlockThreads)
    pool_any(const float* __restrict__ x, float* __restrict__ y) {
  using any_size::Index;
  constexpr Index outputs = static_cast<Index>(any_size::kOutputs);
  constexpr Index out_width = static_cast<Index>(problem::out_width);
  constexpr Index out_height = static_cast<Index>(problem::out_height);
  constexpr Index out_depth = static_cast<Index>(problem::out_depth);
  constexpr long long plane = 1ll * problem::height * problem::width;
  constexpr long long volume = plane * problem::depth;

  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < outputs; i += step) {
    Index rest = i;
    const int ow = static_cast<int>(rest % out_width);
    rest /= out_width;
    const int oh = static_cast<int>(rest % out_height);
    rest /= out_height;
    const int od = static_cast<int>(rest % out_depth);
    rest /= out_depth;

    const float* in = x + static_cast<long long>(rest) * volume;
    const int d0 = od * problem::stride - problem::padding;
    const int h0 = oh * problem::stride - problem::padding;
    const int w0 = ow * problem::stride - problem::padding;

    float best = __int_as_float(static_cast<int>(0xff800000u));
#pragma unroll 3
    for (int kd = 0; kd < problem::kernel; ++kd) {
      const int d = d0 + kd * problem::dilation;
      if (d >= 0 && d < problem::depth) {
#pragma unroll 3
        for (int kh = 0; kh < problem::kernel; ++kh) {
          const int h = h0 + kh * problem::dilation;
          if (h >= 0 && h < problem::height) {
            const float* row = in + (d * plane + 1ll * h * problem::width);
#pragma unroll 3
            for (int kw = 0; kw < problem::kernel; ++kw) {
              const int w = w0 + kw * problem::dilation;
              if (w >= 0 && w < problem::width) best = any_size::larger(best, row[w]);
            }
          }
        }
      }
    }
    y[i] = best;
  }
}
