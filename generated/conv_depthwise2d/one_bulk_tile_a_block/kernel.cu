#include "problem.h"

// The kernel for the problem's own sizes. The constants here hide those of problem.h, so that it
// compiles at any size; the plan launches it at the own sizes only.
namespace own_sizes {

namespace problem {
inline constexpr int batch = 16;
inline constexpr int channels = 64;
inline constexpr int height = 512;
inline constexpr int width = 512;
inline constexpr int kernel = 3;
inline constexpr int out_height = 510;
inline constexpr int out_width = 510;
}  // namespace problem

#ifndef BLOCKS
#define BLOCKS 7
#endif
#ifndef TAIL_TILES
#define TAIL_TILES 1536
#endif

namespace {

constexpr int kRows = 10;                                      // output rows of a tile
constexpr int kInRows = kRows + 2;                             // input rows of a tile
constexpr int kThreads = 128;
constexpr int W = problem::width;                              // 512
constexpr int OW = problem::out_width;                         // 510
constexpr int kTilesPerPlane = problem::out_height / kRows;    // 51
constexpr int kPlanes = problem::batch * problem::channels;    // 1024
constexpr int kTiles = kPlanes * kTilesPerPlane;               // 52224
constexpr int kInBytes = kInRows * W * 4;                      // 24576
constexpr int kOutFloats = kRows * OW;                         // 5100
constexpr int kOutBytes = kOutFloats * 4;                      // 20400
constexpr int kBarrierOffset = kInBytes;
constexpr int kSharedBytes = kBarrierOffset + 16;

static_assert(problem::out_height % kRows == 0 && kRows % 2 == 0, "tile rows");
static_assert(W == 4 * kThreads, "four columns per thread");
static_assert(OW == W - 2 && problem::kernel == 3, "3x3 without padding");
static_assert(kOutBytes % 16 == 0, "bulk stores need multiples of 16 bytes");
static_assert(kOutBytes <= kInBytes, "the output image replaces the input");
static_assert(kSharedBytes <= 28288, "dynamic shared memory of the plan");
static_assert(kTiles == 52224, "grid of the plan");

__device__ __forceinline__ void mbar_wait(unsigned bar, unsigned parity) {
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
  } while (!done);
}

template <int I>
__device__ __forceinline__ void load_weights(float (&w)[9], unsigned long long wa) {
  asm volatile("ld.global.nc.f32 %0, [%1+%2];" : "=f"(w[I]) : "l"(wa), "n"(I * 4));
  if constexpr (I + 1 < 9) load_weights<I + 1>(w, wa);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    depthwise_tile(const float* __restrict__ x, const float* __restrict__ weight,
                   float* __restrict__ y) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned bar = base + kBarrierOffset;

  const int t = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x);
  const int plane = tile / kTilesPerPlane;

  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1u) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                 "r"(static_cast<unsigned>(kInBytes))
                 : "memory");
    // A plane has two input rows more than its tiles have output rows.
    const float* src = x + (tile * (kRows * W) + plane * (2 * W));
    if (tile < kTiles - TAIL_TILES) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1], %2, [%3];" ::"r"(base),
          "l"(src), "r"(static_cast<unsigned>(kInBytes)), "r"(bar)
          : "memory");
    } else {
      unsigned long long policy;
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
          "[%0], [%1], %2, [%3], %4;" ::"r"(base),
          "l"(src), "r"(static_cast<unsigned>(kInBytes)), "r"(bar), "l"(policy)
          : "memory");
    }
  }

  // On their way while the tile is being loaded.
  float w[9];
  load_weights<0>(w, static_cast<unsigned long long>(__cvta_generic_to_global(weight)) +
                         36ull * static_cast<unsigned>(plane % problem::channels));

  __syncthreads();  // the barrier is initialised
  mbar_wait(bar, 0);

  const float* in = reinterpret_cast<const float*>(memory);
  const float* p0 = in + 4 * t;
  const float* p1 = in + ((4 * t + 4) & (W - 1));  // the last thread wraps around to column 0

  // Even output rows: columns 4t..4t+3, odd ones: columns 4t+2..4t+5.
  float acc[kRows][4];
#pragma unroll
  for (int r = 0; r < kInRows; ++r) {
    float v[8];
    {
      const float4 a = *reinterpret_cast<const float4*>(p0 + r * W);
      const float4 b = *reinterpret_cast<const float4*>(p1 + r * W);
      v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
      v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
    }
    const int o = (r & 1) * 2;  // first input of the columns of output rows r and r - 2
    const int q = 2 - o;        // the same for output row r - 1
    if (r >= 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float s = acc[r - 2][i];
        s = fmaf(w[6], v[o + i], s);
        s = fmaf(w[7], v[o + i + 1], s);
        s = fmaf(w[8], v[o + i + 2], s);
        acc[r - 2][i] = s;
      }
    }
    if (r >= 1 && r <= kRows) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float s = acc[r - 1][i];
        s = fmaf(w[3], v[q + i], s);
        s = fmaf(w[4], v[q + i + 1], s);
        s = fmaf(w[5], v[q + i + 2], s);
        acc[r - 1][i] = s;
      }
    }
    if (r < kRows) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float s = w[0] * v[o + i];
        s = fmaf(w[1], v[o + i + 1], s);
        s = fmaf(w[2], v[o + i + 2], s);
        acc[r][i] = s;
      }
    }
  }

  __syncthreads();  // everybody has read the input: its place is free

  float* out = reinterpret_cast<float*>(memory);
  if (t != kThreads - 1) {
    float* o0 = out + 4 * t;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      *reinterpret_cast<float4*>(o0 + r * OW + (r & 1) * 2) =
          make_float4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    }
  } else {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if ((r & 1) == 0) {  // columns 508, 509
        *reinterpret_cast<float2*>(out + r * OW + (OW - 2)) = make_float2(acc[r][0], acc[r][1]);
      } else {             // columns 0, 1
        *reinterpret_cast<float2*>(out + r * OW) = make_float2(acc[r][2], acc[r][3]);
      }
    }
  }

  // Make the results visible to the bulk-copy engine.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  if (t == 0) {
    float* dst = y + tile * kOutFloats;
    if (tile < kTiles - TAIL_TILES) {
      unsigned long long policy;
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(dst),
          "r"(base), "r"(static_cast<unsigned>(kOutBytes)), "l"(policy)
          : "memory");
    } else {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
                   "r"(base), "r"(static_cast<unsigned>(kOutBytes))
                   : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    // Shared memory has to live until it has been read; the writes finish by themselves.
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

}  // namespace own_sizes

// The plain kernel for all other sizes: the constants are those of problem.h.
namespace any_size {

constexpr int kAnyThreads = 256;

constexpr unsigned long long at_least_one(long long n) {  // keeps a division by it well-formed
  return n > 0 ? static_cast<unsigned long long>(n) : 1ull;
}

constexpr long long kOutH = ::problem::out_height;
constexpr long long kOutW = ::problem::out_width;
constexpr bool kEmpty = kOutH <= 0 || kOutW <= 0;
constexpr unsigned long long kOutHDiv = at_least_one(kOutH);
constexpr unsigned long long kOutWDiv = at_least_one(kOutW);
constexpr unsigned long long kChannels = at_least_one(::problem::channels);
constexpr unsigned long long kInH = at_least_one(::problem::height);
constexpr unsigned long long kInW = at_least_one(::problem::width);
constexpr int kK = ::problem::kernel;
constexpr unsigned long long kTotal =
    kEmpty ? 0ull
           : static_cast<unsigned long long>(::problem::batch) *
                 static_cast<unsigned long long>(::problem::channels) * kOutHDiv * kOutWDiv;

static_assert(kEmpty || (kOutH + kK - 1 <= ::problem::height && kOutW + kK - 1 <= ::problem::width),
              "every window lies inside the input");

}  // namespace any_size

extern "C" __global__ void __launch_bounds__(any_size::kAnyThreads)
    depthwise_any(const float* __restrict__ x, const float* __restrict__ weight,
                  float* __restrict__ y) {
  using namespace any_size;
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i =
           static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < kTotal; i += step) {
    const unsigned long long column = i % kOutWDiv;
    const unsigned long long line = i / kOutWDiv;
    const unsigned long long row = line % kOutHDiv;
    const unsigned long long plane = line / kOutHDiv;
    const float* in = x + ((plane * kInH + row) * kInW + column);
    const float* w = weight + (plane % kChannels) * (static_cast<unsigned long long>(kK) * kK);
    float sum = 0.0f;
    for (int a = 0; a < kK; ++a) {
      for (int b = 0; b < kK; ++b) {
        sum = fmaf(w[a * kK + b], in[static_cast<unsigned long long>(a) * kInW + b], sum);
      }
    }
    y[i] = sum;
  }
}
