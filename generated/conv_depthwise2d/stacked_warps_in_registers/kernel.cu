#include "problem.h"

// ---------------------------------------------------------------------------------------------
// The problem's own sizes: the given kernel, as it was. The constants in own_size::problem take
// the place of problem.h there, so that it compiles whatever the header says.
// ---------------------------------------------------------------------------------------------
namespace own_size {

namespace problem {
inline constexpr int batch = 16;
inline constexpr int channels = 64;
inline constexpr int height = 512;
inline constexpr int width = 512;
inline constexpr int kernel = 3;
inline constexpr int out_height = 510;
inline constexpr int out_width = 510;
}  // namespace problem

#ifndef GROUP_ROWS
#define GROUP_ROWS 10
#endif
#ifndef GROUPS
#define GROUPS 3
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

namespace {

constexpr int kOutRows = GROUP_ROWS;        // output rows of a group of 128 threads
constexpr int kInRows = kOutRows + 2;       // input rows of a group
constexpr int kBlockRows = kOutRows * GROUPS;
constexpr int kXPitch = problem::width * 4;
constexpr int kYPitch = problem::out_width * 4;

static_assert(kOutRows % 2 == 0, "a group begins on an even output row");
static_assert(2 * kInRows <= 32, "the edges of all rows fit one load of a warp");
static_assert(problem::out_height % kBlockRows == 0, "whole blocks");
static_assert(problem::width == 512 && problem::out_width == 510 && problem::kernel == 3, "shape");

// All row loads of a thread, one aligned 16-byte load for each input row.
template <int K>
__device__ __forceinline__ void load_rows(float (&c)[kInRows][4], unsigned long long xa) {
  asm volatile("ld.global.nc.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4+%5];"
               : "=f"(c[K][0]), "=f"(c[K][1]), "=f"(c[K][2]), "=f"(c[K][3])
               : "l"(xa), "n"(K * kXPitch));
  if constexpr (K + 1 < kInRows) load_rows<K + 1>(c, xa);
}

template <int I>
__device__ __forceinline__ void load_weights(float (&w)[9], unsigned long long wa) {
  asm volatile("ld.global.nc.f32 %0, [%1+%2];" : "=f"(w[I]) : "l"(wa), "n"(I * 4));
  if constexpr (I + 1 < 9) load_weights<I + 1>(w, wa);
}

// Input row K begins output row K, continues K - 1, ends and stores K - 2.
// Even output rows: the thread owns columns 4t..4t+3; odd ones: 4t-2..4t+1.
template <int K>
__device__ __forceinline__ void rows_from(const float (&c)[kInRows][4], float e0, float e1, int edge_base,
                                          float (&acc)[3][4], const float (&w)[9],
                                          unsigned long long ya, int lane, int t) {
  constexpr bool ODD = (K & 1) != 0;
  constexpr int SAME = ODD ? 0 : 2;
  constexpr int OTHER = ODD ? 2 : 0;
  constexpr int NEW = K % 3;
  constexpr int MID = (K + 2) % 3;
  constexpr int OLD = (K + 1) % 3;
  constexpr bool NEED_LEFT = K != 0;              // row 0 only begins an even output row
  constexpr bool NEED_RIGHT = K != kInRows - 1;   // the last row only ends an odd output row

  // v[n] is input column 4t - 2 + n.
  float v[8];
  v[2] = c[K][0];
  v[3] = c[K][1];
  v[4] = c[K][2];
  v[5] = c[K][3];
  const float edge0 = __shfl_sync(0xffffffffu, e0, edge_base + K);
  const float edge1 = __shfl_sync(0xffffffffu, e1, edge_base + K);
  if constexpr (NEED_LEFT) {
    const float l0 = __shfl_up_sync(0xffffffffu, c[K][2], 1);
    const float l1 = __shfl_up_sync(0xffffffffu, c[K][3], 1);
    v[0] = lane == 0 ? edge0 : l0;
    v[1] = lane == 0 ? edge1 : l1;
  } else {
    v[0] = 0.0f;
    v[1] = 0.0f;
  }
  if constexpr (NEED_RIGHT) {
    const float r0 = __shfl_down_sync(0xffffffffu, c[K][0], 1);
    const float r1 = __shfl_down_sync(0xffffffffu, c[K][1], 1);
    v[6] = lane == 31 ? edge0 : r0;
    v[7] = lane == 31 ? edge1 : r1;
  } else {
    v[6] = 0.0f;
    v[7] = 0.0f;
  }

  if constexpr (K >= 2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float s = acc[OLD][i];
      s = fmaf(v[SAME + i + 0], w[6], s);
      s = fmaf(v[SAME + i + 1], w[7], s);
      s = fmaf(v[SAME + i + 2], w[8], s);
      acc[OLD][i] = s;
    }
    if constexpr (ODD) {
      asm volatile(
          "{\n\t"
          ".reg .pred p;\n\t"
          "setp.ne.s32 p, %5, 0;\n\t"
          "@p st.global.cs.v4.f32 [%0+%6], {%1, %2, %3, %4};\n\t"
          "@!p st.global.cs.v2.f32 [%0+%7], {%3, %4};\n\t"
          "}"
          :
          : "l"(ya), "f"(acc[OLD][0]), "f"(acc[OLD][1]), "f"(acc[OLD][2]), "f"(acc[OLD][3]), "r"(t),
            "n"((K - 2) * kYPitch - 8), "n"((K - 2) * kYPitch)
          : "memory");
    } else {
      asm volatile(
          "{\n\t"
          ".reg .pred p;\n\t"
          "setp.ne.s32 p, %5, 127;\n\t"
          "@p st.global.cs.v4.f32 [%0+%6], {%1, %2, %3, %4};\n\t"
          "@!p st.global.cs.v2.f32 [%0+%6], {%1, %2};\n\t"
          "}"
          :
          : "l"(ya), "f"(acc[OLD][0]), "f"(acc[OLD][1]), "f"(acc[OLD][2]), "f"(acc[OLD][3]), "r"(t),
            "n"((K - 2) * kYPitch)
          : "memory");
    }
  }
  if constexpr (K >= 1 && K - 1 < kOutRows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float s = acc[MID][i];
      s = fmaf(v[OTHER + i + 0], w[3], s);
      s = fmaf(v[OTHER + i + 1], w[4], s);
      s = fmaf(v[OTHER + i + 2], w[5], s);
      acc[MID][i] = s;
    }
  }
  if constexpr (K < kOutRows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float s = v[SAME + i + 0] * w[0];
      s = fmaf(v[SAME + i + 1], w[1], s);
      s = fmaf(v[SAME + i + 2], w[2], s);
      acc[NEW][i] = s;
    }
  }

  if constexpr (K + 1 < kInRows) rows_from<K + 1>(c, e0, e1, edge_base, acc, w, ya, lane, t);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128 * GROUPS, MIN_BLOCKS)
    depthwise_tile(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y) {
  const int t = static_cast<int>(threadIdx.x);      // 0..127: four columns each
  const int group = static_cast<int>(threadIdx.y);  // groups lie on top of each other
  const int lane = t & 31;
  const int warp = t >> 5;
  const int plane = static_cast<int>(blockIdx.y);
  const int row0 = static_cast<int>(blockIdx.x) * kBlockRows + group * kOutRows;

  const unsigned long long xrow =
      static_cast<unsigned long long>(__cvta_generic_to_global(x)) +
      4ull * static_cast<unsigned>((plane * problem::height + row0) * problem::width);
  const unsigned long long xa = xrow + 16ull * static_cast<unsigned>(t);

  // Every row of the tile is requested before anything is computed.
  float c[kInRows][4];
  load_rows<0>(c, xa);

  // The two columns on either side of the warp, for all rows, in one load: lane l < kInRows has the
  // left edge of row l, lane kInRows + l the right edge of row l. Outside the plane they are not
  // loaded; those values reach no stored output.
  float e0 = 0.0f;
  float e1 = 0.0f;
  {
    const bool left = lane < kInRows;
    const int edge_row = left ? lane : lane - kInRows;
    const unsigned active =
        ((left && warp != 0) || (!left && lane < 2 * kInRows && warp != 3)) ? 1u : 0u;
    const long long offset =
        static_cast<long long>(edge_row * kXPitch + warp * 512 + (left ? -8 : 512));
    const unsigned long long ea = xrow + static_cast<unsigned long long>(offset);
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.u32 p, %3, 0;\n\t"
        "@p ld.global.nc.v2.f32 {%0, %1}, [%2];\n\t"
        "}"
        : "+f"(e0), "+f"(e1)
        : "l"(ea), "r"(active));
  }

  float w[9];
  load_weights<0>(w, static_cast<unsigned long long>(__cvta_generic_to_global(weight)) +
                         36ull * static_cast<unsigned>(plane % problem::channels));

  const unsigned long long ya =
      static_cast<unsigned long long>(__cvta_generic_to_global(y)) +
      4ull * static_cast<unsigned>((plane * problem::out_height + row0) * problem::out_width + 4 * t);

  // Lane 0 takes the left edges, lane 31 the right ones; what the others get is not used.
  const int edge_base = lane == 0 ? 0 : kInRows;

  float acc[3][4];
  rows_from<0>(c, e0, e1, edge_base, acc, w, ya, lane, t);
}

}  // namespace own_size

// ---------------------------------------------------------------------------------------------
// All other sizes: plain and right for any shape. Here `problem` is the header's.
// ---------------------------------------------------------------------------------------------
#ifndef STRIP_ROWS
#define STRIP_ROWS 8
#endif
#ifndef ANY_THREADS
#define ANY_THREADS 256
#endif

namespace any_size {

constexpr bool kOwnAxes = problem::batch == 16 && problem::channels == 64 && problem::height == 512 &&
                          problem::width == 512;
static_assert(!kOwnAxes || problem::kernel == 3, "depthwise_tile is for 3x3");

constexpr int kRows = STRIP_ROWS;  // output rows of one work item
constexpr int kKernel = static_cast<int>(problem::kernel);
constexpr int kOutHeight = problem::out_height > 0 ? static_cast<int>(problem::out_height) : 0;
constexpr int kOutWidth = problem::out_width > 0 ? static_cast<int>(problem::out_width) : 0;
constexpr int kStrips = kOutHeight / kRows + (kOutHeight % kRows != 0 ? 1 : 0);
constexpr unsigned long long kItems = static_cast<unsigned long long>(problem::batch) *
                                      static_cast<unsigned long long>(problem::channels) *
                                      static_cast<unsigned long long>(kStrips) *
                                      static_cast<unsigned long long>(kOutWidth);

// Divisors are never zero, even where there is nothing to do.
constexpr unsigned kDivWidth = kOutWidth > 0 ? static_cast<unsigned>(kOutWidth) : 1u;
constexpr unsigned kDivStrips = kStrips > 0 ? static_cast<unsigned>(kStrips) : 1u;

// 32 bits suffice for the items if one more stride (at most 2^30, see the plan) cannot wrap.
template <bool SMALL>
struct index_of {
  using type = unsigned long long;
};
template <>
struct index_of<true> {
  using type = unsigned;
};
using index_t = index_of<(kItems <= 2147483648ull)>::type;

}  // namespace any_size

extern "C" __global__ void __launch_bounds__(ANY_THREADS)
    depthwise_any_size(const float* __restrict__ x, const float* __restrict__ weight,
                       float* __restrict__ y) {
  using any_size::index_t;
  constexpr int R = any_size::kRows;
  constexpr int KS = any_size::kKernel;
  constexpr long long kInPitch = problem::width;
  constexpr long long kOutPitch = problem::out_width;

  const index_t stride = static_cast<index_t>(gridDim.x) * static_cast<index_t>(blockDim.x);
  for (index_t item = static_cast<index_t>(blockIdx.x) * static_cast<index_t>(blockDim.x) +
                      static_cast<index_t>(threadIdx.x);
       item < any_size::kItems; item += stride) {
    const index_t line = item / any_size::kDivWidth;
    const int column = static_cast<int>(item - line * any_size::kDivWidth);
    const index_t plane = line / any_size::kDivStrips;
    const int strip = static_cast<int>(line - plane * any_size::kDivStrips);
    const int channel = static_cast<int>(plane % static_cast<unsigned>(problem::channels));
    const int row0 = strip * R;
    const int left_rows = any_size::kOutHeight - row0;
    const int rows = left_rows < R ? left_rows : R;

    const float* in =
        x + (static_cast<long long>(plane) * problem::height + row0) * kInPitch + column;
    const float* taps = weight + static_cast<long long>(channel) * (KS * KS);
    float* out = y + (static_cast<long long>(plane) * problem::out_height + row0) * kOutPitch + column;

    if constexpr (KS == 3) {
      float w[9];
#pragma unroll
      for (int i = 0; i < 9; ++i) w[i] = taps[i];

      if (rows == R) {
        // A whole strip: every input row is read once and added to the outputs that it reaches.
        float acc[R];
#pragma unroll
        for (int r = 0; r < R; ++r) acc[r] = 0.0f;
#pragma unroll
        for (int k = 0; k < R + 2; ++k) {
          const float v0 = in[k * kInPitch + 0];
          const float v1 = in[k * kInPitch + 1];
          const float v2 = in[k * kInPitch + 2];
#pragma unroll
          for (int i = 0; i < 3; ++i) {
            const int r = k - i;
            if (r >= 0 && r < R) {
              acc[r] = fmaf(v0, w[3 * i + 0], acc[r]);
              acc[r] = fmaf(v1, w[3 * i + 1], acc[r]);
              acc[r] = fmaf(v2, w[3 * i + 2], acc[r]);
            }
          }
        }
#pragma unroll
        for (int r = 0; r < R; ++r) out[r * kOutPitch] = acc[r];
      } else {
        // The last strip of a plane may be shorter.
#pragma unroll 1
        for (int r = 0; r < rows; ++r) {
          float s = 0.0f;
#pragma unroll
          for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 3; ++j) s = fmaf(in[(r + i) * kInPitch + j], w[3 * i + j], s);
          }
          out[r * kOutPitch] = s;
        }
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < rows; ++r) {
        float s = 0.0f;
#pragma unroll 1
        for (int i = 0; i < KS; ++i) {
#pragma unroll 1
          for (int j = 0; j < KS; ++j) s = fmaf(in[(r + i) * kInPitch + j], taps[i * KS + j], s);
        }
        out[r * kOutPitch] = s;
      }
    }
  }
}
