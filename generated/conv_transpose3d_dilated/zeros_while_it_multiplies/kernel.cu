#include "problem.h"
#include <cooperative_groups.h>
#include <cuda_fp16.h>

// ===================================================================================================
// The kernel for the problem's own sizes.
// ===================================================================================================

namespace own {

namespace problem {
inline constexpr int batch = 4;
inline constexpr int in_channels = 32;
inline constexpr int out_channels = 64;
inline constexpr int depth = 16;
inline constexpr int height = 32;
inline constexpr int width = 32;
inline constexpr int kernel = 3;
inline constexpr int stride = 2;
inline constexpr int padding = 1;
inline constexpr int dilation = 2;
inline constexpr int out_depth = 33;
inline constexpr int out_height = 65;
inline constexpr int out_width = 65;
inline constexpr int x_elements = 2097152;
inline constexpr int weight_elements = 55296;
inline constexpr int y_elements = 35692800;
}  // namespace problem

typedef unsigned int u32;
typedef unsigned long long u64;

// Converted x: [batch][depth][chunk 8][34][34][16 bytes], with a halo of zeros.
// Chunks 0, 1: e4m3 of the low part; 2, 3: e4m3 of the high part; 4 to 7: fp16.
constexpr int kPlaneBytes = 34 * 34 * 16;      // 18496
constexpr int kRowBytes = 34 * 16;             // 544
constexpr int kSlabBytes = 10 * kRowBytes;     // 5440: 10 rows of one chunk
constexpr int kSlotBytes = 4 * kSlabBytes;     // 21760
constexpr int kPairBytes = 4 * kSlotBytes;     // 87040: four slots of one pair of warpgroups
constexpr int kTapBytes = 4096;
constexpr int kStageBytes = 3 * kTapBytes;     // 12288
constexpr int kZeroBytes = 4352;
constexpr int kZeroPiece = 1056;               // floats; four pieces a plane, the last may have 1088
constexpr int kEarlyPieces = 24;               // queued before the grid barrier
constexpr int kAllPieces = 34 * 4;

constexpr int kOffW = 2 * kPairBytes;              // 174080
constexpr int kOffZero = kOffW + 4 * kStageBytes;  // 223232
constexpr int kOffBars = kOffZero + kZeroBytes;    // 227584
// barriers: wfull[4], wempty[4], then for each pair xfull[4], xempty[4], then turn
constexpr int kStageChannel = 264;             // floats of one channel in the epilogue's staging

constexpr int kPlane = 65 * 65;                // 4225

static_assert(problem::out_width == 65 && problem::out_height == 65 && problem::out_depth == 33, "sizes");
static_assert(problem::batch == 4 && problem::in_channels == 32 && problem::out_channels == 64, "sizes");
static_assert(problem::depth == 16 && problem::height == 32 && problem::width == 32, "sizes");
static_assert(64 * kStageChannel * 4 <= kPairBytes, "staging");
static_assert(kOffBars + 256 == 227840, "the plan says so");

// Up to the next multiple of 128 bytes.
__device__ __forceinline__ int line_up(int i) { return (i + 31) & ~31; }

template <bool streaming>
__device__ __forceinline__ void store4(float* at, float a, float b, float c, float d) {
  if constexpr (streaming) {
    asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
  } else {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
  }
}

__device__ __forceinline__ float load_once(const float* at) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(at));
  return v;
}

__device__ __forceinline__ u32 e4m3_pair(float low, float high) {
  unsigned short d;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
  return static_cast<u32>(d);
}

__device__ __forceinline__ u32 half_pair(__half low, __half high) {
  return static_cast<u32>(__half_as_ushort(low)) | (static_cast<u32>(__half_as_ushort(high)) << 16);
}

// Eight weights (input channels 8 * k8 to 8 * k8 + 7) of one tap and one output channel.
__device__ __forceinline__ void convert_weight(const float (&v)[8], int tap, int o, int k8, unsigned char* ws) {
  u32 h16[4], hi8[2], lo8[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = v[2 * i] * 1024.0f, b = v[2 * i + 1] * 1024.0f;
    const __half ha = __float2half_rn(a), hb = __float2half_rn(b);
    const float fa = __half2float(ha), fb = __half2float(hb);
    h16[i] = half_pair(ha, hb);
    const u32 h = e4m3_pair(fa * 4.0f, fb * 4.0f);                            // 2^12 w_hi
    const u32 l = e4m3_pair((a - fa) * 16384.0f, (b - fb) * 16384.0f);        // 2^24 w_lo
    if (i & 1) {
      hi8[i >> 1] |= h << 16;
      lo8[i >> 1] |= l << 16;
    } else {
      hi8[i >> 1] = h;
      lo8[i >> 1] = l;
    }
  }
  unsigned char* p16 = ws + 27 * kTapBytes + tap * kTapBytes + k8 * 1024 + o * 16;
  unsigned char* p8 = ws + tap * kTapBytes + (k8 >> 1) * 1024 + o * 16 + (k8 & 1) * 8;
  *reinterpret_cast<uint4*>(p16) = make_uint4(h16[0], h16[1], h16[2], h16[3]);
  *reinterpret_cast<uint2*>(p8) = make_uint2(hi8[0], hi8[1]);
  *reinterpret_cast<uint2*>(p8 + 2048) = make_uint2(lo8[0], lo8[1]);
}

// ---------------------------------------------------------------------------------------------------

__device__ __forceinline__ void mbar_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity) {
  u32 done;
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
  } while (done == 0u);
}

__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ __forceinline__ void bulk_load(u32 to, const void* from, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar)
               : "memory");
}

#define ACC_NAMES                                                                                    \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                          \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                 \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                 \
  "%64, %65, %66, %67}"
#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4(i), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)
#define ACC68 ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC4(64)

__device__ __forceinline__ void wgmma_fp8(float (&d)[68], u64 a, u64 b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %70, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n136k32.f32.e4m3.e4m3 " ACC_NAMES
      ", %68, %69, p, 1, 1;\n"
      "}\n"
      : ACC68
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ void wgmma_fp16(float (&d)[68], u64 a, u64 b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %70, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n136k16.f32.f16.f16 " ACC_NAMES
      ", %68, %69, p, 1, 1, 0, 0;\n"
      "}\n"
      : ACC68
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ void fence_registers(float (&d)[68]) {
#pragma unroll
  for (int i = 0; i < 68; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ u32 bar_wfull(u32 bars, int i) { return bars + static_cast<u32>(i) * 8u; }
__device__ __forceinline__ u32 bar_wempty(u32 bars, int i) { return bars + 32u + static_cast<u32>(i) * 8u; }
__device__ __forceinline__ u32 bar_xfull(u32 bars, int pair, int i) {
  return bars + 64u + static_cast<u32>(pair) * 64u + static_cast<u32>(i) * 8u;
}
__device__ __forceinline__ u32 bar_xempty(u32 bars, int pair, int i) {
  return bars + 96u + static_cast<u32>(pair) * 64u + static_cast<u32>(i) * 8u;
}
__device__ __forceinline__ u32 bar_turn(u32 bars) { return bars + 192u; }

// All taps of one phase: `planes` depth planes, three stages of three taps each, two products a tap.
template <bool fp8>
__device__ __forceinline__ void run_phase(float (&acc)[68], int first_plane, int planes, int stage_base, int pair,
                                          u32 x_desc, u32 w_desc, u32 bars, int lane, bool hand_over) {
#pragma unroll 1
  for (int i = 0; i < planes; ++i) {
    const int p = first_plane + i;
    const int slot = p & 3;
    mbar_wait(bar_xfull(bars, pair, slot), static_cast<u32>((p >> 2) & 1));
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      const int stage = stage_base + 3 * p + r;
      mbar_wait(bar_wfull(bars, stage & 3), static_cast<u32>((stage >> 2) & 1));
      __syncwarp();
      const u32 a_low = w_desc + static_cast<u32>(stage & 3) * (kStageBytes / 16);
      const u32 b_low = x_desc + static_cast<u32>(slot) * (kSlotBytes / 16) + (2 - r) * 34;
      fence_registers(acc);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int s = 0; s < 3; ++s) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const u64 a = (static_cast<u64>(128 / 16) << 32) | (a_low + s * (kTapBytes / 16) + j * (2048 / 16));
          const u64 b = (static_cast<u64>(128 / 16) << 32) | (b_low + (2 - s) + j * (2 * kSlabBytes / 16));
          if constexpr (fp8) {
            wgmma_fp8(acc, a, b);
          } else {
            wgmma_fp16(acc, a, b);
          }
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      fence_registers(acc);
      if (lane == 0) {
        if (r > 0) {
          mbar_arrive(bar_wempty(bars, (stage - 1) & 3));
        } else if (i > 0) {
          mbar_arrive(bar_wempty(bars, (stage - 1) & 3));
          mbar_arrive(bar_xempty(bars, pair, (p - 1) & 3));
        }
      }
      __syncwarp();
    }
  }
  // All weights of this pair have been seen; its last products are still running.
  if (hand_over && lane == 0) mbar_arrive(bar_turn(bars));
  __syncwarp();
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  fence_registers(acc);
  if (lane == 0) {
    const int last_plane = first_plane + planes - 1;
    mbar_arrive(bar_wempty(bars, (stage_base + 3 * last_plane + 2) & 3));
    mbar_arrive(bar_xempty(bars, pair, last_plane & 3));
  }
  __syncwarp();
}

// A warp writes the runs of eight channels: 16 (or 17) rows of 65 floats each, from the first to the last
// multiple of 128 bytes. `image` is batch * 64, k the run's number in the plane.
template <bool streaming>
__device__ __forceinline__ void write_runs(const float* staged, float* y, int image, int a, int k, int warp, int lane) {
  const int length = k == 3 ? 17 * 65 : 16 * 65;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    const int o = i * 8 + warp;
    const int start = ((image + o) * 33 + 2 * a + 1) * kPlane + k * 1040;
    const int first = line_up(start);
    const int count = (line_up(start + length) - first) >> 2;  // 256 to 280 vectors
    const int m = first - start;
    const bool odd = (m & 1) != 0;
    const float* from = staged + o * kStageChannel;
    float* to = y + first + lane * 4;
    const int u_first = ((m + 1) >> 1) + 2 * lane;
#pragma unroll
    for (int it = 0; it < 9; ++it) {
      if (it < 8 || it * 32 + lane < count) {
        // Even offsets 2 u and 2 u + 2 of the run; rows come in pairs of 130 floats.
        const int u = u_first + it * 64;
        const int h = (u * 1009) >> 16;  // u / 65
        const int j = u - 65 * h;
        const int at = h * 32 + j - 33;
        float va = 0.0f, vb = 0.0f;
        if (u < 520 && j >= 33) va = from[at];
        if (u < 520 && j >= 32 && j < 64) vb = from[at + 1];
        store4<streaming>(to + it * 128, odd ? 0.0f : va, odd ? va : 0.0f, odd ? 0.0f : vb, odd ? vb : 0.0f);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(576, 1)
convolve(const float* __restrict__ x, const float* __restrict__ weight, unsigned char* xs, unsigned char* ws,
         float* y) {
  extern __shared__ __align__(128) unsigned char smem[];
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(smem));
  const u32 bars = base + kOffBars;
  const int tid = threadIdx.x;
  const int warp = __shfl_sync(0xffffffffu, tid >> 5, 0);
  const int lane = tid & 31;
  const int block = blockIdx.x;
  const int half_index = block & 1;
  const int a = (block >> 1) & 15;
  const int b = block >> 5;

  // Zeros of the planes with even t: 34 planes a block, four pieces a plane.
  auto zero_piece = [&](int piece, u64 policy) {
    const int z = piece >> 2, part = piece & 3;
    const int second = z >= 17 ? 1 : 0;
    const int plane = ((2 * block + second) * 33 + 2 * (z - 17 * second)) * kPlane;
    const int at = line_up(plane) + part * kZeroPiece;
    const int count = part == 3 ? line_up(plane + kPlane) - at : kZeroPiece;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(y + at),
                 "r"(base + kOffZero), "r"(count * 4), "l"(policy)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  };
  u64 policy = 0;

  if (warp < 16) {
    if (tid == 0) {
      for (int i = 0; i < 4; ++i) {
        mbar_init(bar_wfull(bars, i), 1);
        mbar_init(bar_wempty(bars, i), 8);
        mbar_init(bar_xfull(bars, 0, i), 1);
        mbar_init(bar_xfull(bars, 1, i), 1);
        mbar_init(bar_xempty(bars, 0, i), 8);
        mbar_init(bar_xempty(bars, 1, i), 8);
      }
      mbar_init(bar_turn(bars), 8);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    // One row of the plane a, all channels.
    const int row = half_index * 16 + warp;
    const float* src = x + (b * 32 * 16 + a) * 1024 + row * 32 + lane;
    float v[32];
#pragma unroll
    for (int c = 0; c < 32; ++c) v[c] = load_once(src + c * 16384);

    unsigned char* plane = xs + (b * 16 + a) * 8 * kPlaneBytes;
    const uint4 zero = make_uint4(0u, 0u, 0u, 0u);
    // Halo: columns of this row, and the outer row of one chunk for each of eight warps.
    if (lane < 16) {
      const int side = (lane & 1) * 33;
      *reinterpret_cast<uint4*>(plane + (lane >> 1) * kPlaneBytes + ((row + 1) * 34 + side) * 16) = zero;
    }
    if (warp < 8) {
      unsigned char* line = plane + warp * kPlaneBytes + (half_index ? 33 * kRowBytes : 0);
      *reinterpret_cast<uint4*>(line + lane * 16) = zero;
      if (lane < 2) *reinterpret_cast<uint4*>(line + (32 + lane) * 16) = zero;
    }

    const int off = ((row + 1) * 34 + lane + 1) * 16;
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      u32 h16[8], hi8[4], lo8[4];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float a0 = v[16 * g + 2 * i], a1 = v[16 * g + 2 * i + 1];
        const __half h0 = __float2half_rn(a0), h1 = __float2half_rn(a1);
        const float f0 = __half2float(h0), f1 = __half2float(h1);
        h16[i] = half_pair(h0, h1);
        const u32 h = e4m3_pair(f0 * 16.0f, f1 * 16.0f);                            // 2^4 x_hi
        const u32 l = e4m3_pair((a0 - f0) * 65536.0f, (a1 - f1) * 65536.0f);        // 2^16 x_lo
        if (i & 1) {
          hi8[i >> 1] |= h << 16;
          lo8[i >> 1] |= l << 16;
        } else {
          hi8[i >> 1] = h;
          lo8[i >> 1] = l;
        }
      }
      unsigned char* to = plane + off;
      *reinterpret_cast<uint4*>(to + g * kPlaneBytes) = make_uint4(lo8[0], lo8[1], lo8[2], lo8[3]);
      *reinterpret_cast<uint4*>(to + (2 + g) * kPlaneBytes) = make_uint4(hi8[0], hi8[1], hi8[2], hi8[3]);
      *reinterpret_cast<uint4*>(to + (4 + 2 * g) * kPlaneBytes) = make_uint4(h16[0], h16[1], h16[2], h16[3]);
      *reinterpret_cast<uint4*>(to + (5 + 2 * g) * kPlaneBytes) = make_uint4(h16[4], h16[5], h16[6], h16[7]);
    }
  } else if (warp == 16) {
    for (int i = lane; i < kZeroBytes / 16; i += 32) {
      *reinterpret_cast<uint4*>(smem + kOffZero + i * 16) = make_uint4(0u, 0u, 0u, 0u);
    }
    proxy_fence();
    __syncwarp();
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if (lane == 0) {
#pragma unroll 1
      for (int piece = 0; piece < kEarlyPieces; ++piece) zero_piece(piece, policy);
    }
    __syncwarp();
  } else {
    // Weights: two output channels x 27 taps x 8 input channels a block.
    if (lane < 27) {
      const int k8 = block >> 5;
      const int o = (block & 31) * 2;
      const float* src = weight + (k8 * 8 * 64 + o) * 27 + lane;
      float first[8], second[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        first[i] = load_once(src + i * 1728);
        second[i] = load_once(src + i * 1728 + 27);
      }
      convert_weight(first, lane, o, k8, ws);
      convert_weight(second, lane, o + 1, k8, ws);
    }
    __syncwarp();
  }

  proxy_fence();
  cooperative_groups::this_grid().sync();
  proxy_fence();

  // Depth taps that reach inside: plane a + 1 - q in 0 to 15.
  const int q_first = a == 15 ? 1 : 0;
  const int q_last = a == 0 ? 1 : 2;
  const int planes = q_last - q_first + 1;  // 2 or 3
  const int all_planes = 2 * planes;        // FP8, then FP16
  const int pair_stages = 3 * all_planes;

  if (warp < 16) {
    const int pair = warp >> 3;
    const int group = (warp >> 2) & 1;
    float acc[68];
#pragma unroll
    for (int i = 0; i < 68; ++i) acc[i] = 0.0f;
    const u32 x_desc = ((base + static_cast<u32>(pair) * kPairBytes) >> 4) + static_cast<u32>(group * 136) +
                       (static_cast<u32>(kSlabBytes / 16) << 16);
    const u32 w_desc = ((base + kOffW) >> 4) + (static_cast<u32>(1024 / 16) << 16);
    const int stage_base = pair * pair_stages;

    if (pair == 1) mbar_wait(bar_turn(bars), 0u);
    __syncwarp();

    run_phase<true>(acc, 0, planes, stage_base, pair, x_desc, w_desc, bars, lane, false);
#pragma unroll
    for (int i = 0; i < 68; ++i) acc[i] *= 3.814697265625e-06f;  // 2^-18
    run_phase<false>(acc, planes, planes, stage_base, pair, x_desc, w_desc, bars, lane, pair == 0);

    // The slots of this pair are free when both of its warpgroups are here.
    asm volatile("bar.sync %0, 256;" ::"r"(1 + pair) : "memory");
    float* staged = reinterpret_cast<float*>(smem + pair * kPairBytes);
    {
      const int o = (warp & 3) * 16 + (lane >> 2);
      float* to = staged + o * kStageChannel + group * 128;
      const int n_first = 2 * (lane & 3);
#pragma unroll
      for (int j = 0; j < 17; ++j) {
        const int n = n_first + 8 * j;
        const int l = (n * 964) >> 15;  // n / 34
        if (n - 34 * l < 32) {
          float* at = to + n - 2 * l;
          *reinterpret_cast<float2*>(at) =
              make_float2(acc[4 * j] * 0.0009765625f, acc[4 * j + 1] * 0.0009765625f);
          *reinterpret_cast<float2*>(at + 8 * kStageChannel) =
              make_float2(acc[4 * j + 2] * 0.0009765625f, acc[4 * j + 3] * 0.0009765625f);
        }
      }
    }
    asm volatile("bar.sync %0, 256;" ::"r"(1 + pair) : "memory");
    if (pair == 0) {
      write_runs<true>(staged, y, b * 64, a, half_index * 2, warp & 7, lane);
    } else {
      write_runs<false>(staged, y, b * 64, a, half_index * 2 + 1, warp & 7, lane);
    }
  } else if (warp == 16) {
    if (lane == 0) {
#pragma unroll 1
      for (int piece = kEarlyPieces; piece < kAllPieces; ++piece) {
        zero_piece(piece, policy);
        asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory");
      }
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncwarp();
  } else {
    if (lane == 0) {
      auto load_plane = [&](int pair, int p) {
        const int phase = p >= planes ? 1 : 0;
        const int q = q_first + p - phase * planes;
        const int d = a + 1 - q;
        const int slot = p & 3;
        const u32 bar = bar_xfull(bars, pair, slot);
        const unsigned char* from =
            xs + ((b * 16 + d) * 8 + phase * 4) * kPlaneBytes + (half_index * 16 + pair * 8) * kRowBytes;
        const u32 to = base + static_cast<u32>(pair * kPairBytes + slot * kSlotBytes);
        mbar_expect(bar, kSlotBytes);
#pragma unroll 1
        for (int c = 0; c < 4; ++c) bulk_load(to + c * kSlabBytes, from + c * kPlaneBytes, kSlabBytes, bar);
      };
      load_plane(0, 0);
#pragma unroll 1
      for (int g = 0; g < 2 * pair_stages; ++g) {
        const int pair = g >= pair_stages ? 1 : 0;
        const int stage = g - pair * pair_stages;
        const int slot = g & 3;
        if (g >= 4) mbar_wait(bar_wempty(bars, slot), static_cast<u32>(((g >> 2) - 1) & 1));
        const int p = stage / 3;
        const int r = stage - 3 * p;
        const int phase = p >= planes ? 1 : 0;
        const int q = q_first + p - phase * planes;
        mbar_expect(bar_wfull(bars, slot), kStageBytes);
        bulk_load(base + kOffW + slot * kStageBytes, ws + phase * 27 * kTapBytes + (q * 3 + r) * kStageBytes,
                  kStageBytes, bar_wfull(bars, slot));
        // There are at least four planes a pair, and four slots.
        if (g >= 1 && g < 4) load_plane(0, g);
        if (g >= 4 && g < 8) load_plane(1, g - 4);
        if (stage >= 6 && r == 0) {
          const int next = p + 2;  // 4 at stage 6, 5 at stage 9
          if (next < all_planes) {
            mbar_wait(bar_xempty(bars, pair, next & 3), static_cast<u32>(((next >> 2) - 1) & 1));
            load_plane(pair, next);
          }
        }
      }
    }
    __syncwarp();
  }
}

}  // namespace own

// ===================================================================================================
// The kernel for all other sizes: FP32, every element from the definition.
// ===================================================================================================

namespace general {

typedef long long i64;

constexpr int kThreads = 256;   // positions of the output a block, one a thread
constexpr int kOuts = 8;        // output channels a thread
constexpr int kSide = ::problem::kernel;
constexpr int kTaps = kSide * kSide * kSide;
constexpr int kFit = 32768 / (kTaps * kOuts * 4);
constexpr int kAtOnce = kFit < 1 ? 1 : (kFit > 16 ? 16 : kFit);  // input channels staged at once

constexpr int kInChannels = ::problem::in_channels;
constexpr int kOutChannels = ::problem::out_channels;
constexpr i64 kInPlane = 1ll * ::problem::height * ::problem::width;
constexpr i64 kInSpace = kInPlane * ::problem::depth;
constexpr i64 kOutPlane = 1ll * ::problem::out_height * ::problem::out_width;
constexpr i64 kOutSpace = kOutPlane * ::problem::out_depth;
constexpr i64 kChunks = (kOutSpace + kThreads - 1) / kThreads;
constexpr i64 kGroups = (kOutChannels + kOuts - 1) / kOuts;
constexpr i64 kTiles = kChunks * kGroups * ::problem::batch;

// The input index that reaches output index `at` through tap k, or -1.
__device__ __forceinline__ int source(int at, int k, int extent) {
  const int n = at + ::problem::padding - k * ::problem::dilation;
  if (n < 0 || n % ::problem::stride != 0) return -1;
  const int i = n / ::problem::stride;
  return i < extent ? i : -1;
}

extern "C" __global__ void __launch_bounds__(256)
any_size(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y) {
  __shared__ __align__(16) float staged[kAtOnce * kTaps * kOuts];  // [input channel][tap][output channel]
  const int tid = static_cast<int>(threadIdx.x);

#pragma unroll 1
  for (i64 tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
    const i64 chunk = tile % kChunks;
    const i64 rest = tile / kChunks;
    const i64 b = rest / kGroups;
    const int o_first = static_cast<int>(rest % kGroups) * kOuts;

    const i64 p = chunk * kThreads + tid;
    const bool inside = p < kOutSpace;
    const int t = static_cast<int>(p / kOutPlane);
    const i64 in_plane = p - t * kOutPlane;
    const int i = static_cast<int>(in_plane / ::problem::out_width);
    const int j = static_cast<int>(in_plane - 1ll * i * ::problem::out_width);

    int from_d[kSide], from_h[kSide], from_w[kSide];
    bool any_d = false, any_h = false, any_w = false;
#pragma unroll
    for (int k = 0; k < kSide; ++k) {
      from_d[k] = source(t, k, ::problem::depth);
      from_h[k] = source(i, k, ::problem::height);
      from_w[k] = source(j, k, ::problem::width);
      any_d = any_d || from_d[k] >= 0;
      any_h = any_h || from_h[k] >= 0;
      any_w = any_w || from_w[k] >= 0;
    }
    const bool active = inside && any_d && any_h && any_w;

    float acc[kOuts];
#pragma unroll
    for (int o = 0; o < kOuts; ++o) acc[o] = 0.0f;

    if (__syncthreads_or(active ? 1 : 0)) {
#pragma unroll 1
      for (int c_first = 0; c_first < kInChannels; c_first += kAtOnce) {
        const int left = kInChannels - c_first;
        const int channels = left < kAtOnce ? left : kAtOnce;
        __syncthreads();  // the weights of the step before have been read
#pragma unroll 1
        for (int e = tid; e < channels * kTaps * kOuts; e += kThreads) {
          const int c = e / (kTaps * kOuts);
          const int r = e - c * (kTaps * kOuts);
          const int o = r / kTaps;
          const int tap = r - o * kTaps;
          float v = 0.0f;
          if (o_first + o < kOutChannels) {
            v = weight[((c_first + c) * static_cast<i64>(kOutChannels) + (o_first + o)) * kTaps + tap];
          }
          staged[(c * kTaps + tap) * kOuts + o] = v;
        }
        __syncthreads();
        if (active) {
#pragma unroll 1
          for (int c = 0; c < channels; ++c) {
            const float* volume = x + (b * kInChannels + c_first + c) * kInSpace;
            const float* taps = staged + c * (kTaps * kOuts);
#pragma unroll
            for (int kd = 0; kd < kSide; ++kd) {
              if (from_d[kd] >= 0) {
#pragma unroll
                for (int kh = 0; kh < kSide; ++kh) {
                  if (from_h[kh] >= 0) {
                    const float* line = volume + from_d[kd] * kInPlane + 1ll * from_h[kh] * ::problem::width;
#pragma unroll
                    for (int kw = 0; kw < kSide; ++kw) {
                      if (from_w[kw] >= 0) {
                        const float v = line[from_w[kw]];
                        const float4* w =
                            reinterpret_cast<const float4*>(taps + ((kd * kSide + kh) * kSide + kw) * kOuts);
                        const float4 w0 = w[0];
                        const float4 w1 = w[1];
                        acc[0] = fmaf(v, w0.x, acc[0]);
                        acc[1] = fmaf(v, w0.y, acc[1]);
                        acc[2] = fmaf(v, w0.z, acc[2]);
                        acc[3] = fmaf(v, w0.w, acc[3]);
                        acc[4] = fmaf(v, w1.x, acc[4]);
                        acc[5] = fmaf(v, w1.y, acc[5]);
                        acc[6] = fmaf(v, w1.z, acc[6]);
                        acc[7] = fmaf(v, w1.w, acc[7]);
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }

    if (inside) {
      float* to = y + (b * kOutChannels + o_first) * kOutSpace + p;
#pragma unroll
      for (int o = 0; o < kOuts; ++o) {
        if (o_first + o < kOutChannels) to[o * kOutSpace] = acc[o];
      }
    }
  }
}

}  // namespace general
