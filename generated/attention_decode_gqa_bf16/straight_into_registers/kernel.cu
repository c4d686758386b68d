#include <cuda_bf16.h>

#include "problem.h"

namespace {

constexpr int kSplit = 512;
constexpr int kSplits = problem::capacity / kSplit;
constexpr int kWarps = 4;
constexpr int kTile = 16;
constexpr int kStep = kWarps * kTile;
constexpr int kRowBytes = problem::head_dim * 2;
constexpr float kNoMax = -1.0e30f;
constexpr float kRaise = 8.0f;

__device__ __forceinline__ uint4 load_stream(const char* p) {
  uint4 r;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(p));
  return r;
}

__device__ __forceinline__ void mma16816(float (&c)[4], unsigned a0, unsigned a1, unsigned a2,
                                         unsigned a3, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned transpose8x8(unsigned a) {
  unsigned d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

__device__ __forceinline__ float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// The first argument in the low half.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// The rounded pair, or what rounding took away from it.
__device__ __forceinline__ unsigned pack_part(float low, float high, bool residual) {
  const unsigned rounded = pack_bf16(low, high);
  const float low_back = __uint_as_float(rounded << 16);
  const float high_back = __uint_as_float(rounded & 0xffff0000u);
  const unsigned rest = pack_bf16(low - low_back, high - high_back);
  return residual ? rest : rounded;
}

__device__ __forceinline__ unsigned word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ void load_keys(uint4 (&ka)[4], uint4 (&kb)[4], const char* base, int j,
                                          int g, int last_row) {
  const char* p0 = base + static_cast<unsigned>(min(j + g, last_row)) * kRowBytes;
  const char* p1 = base + static_cast<unsigned>(min(j + g + 8, last_row)) * kRowBytes;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    ka[c] = load_stream(p0 + c * 64);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    kb[c] = load_stream(p1 + c * 64);
  }
}

__device__ __forceinline__ void load_values(uint4 (&v)[4][2], const char* base, int j, int t,
                                            int last_row) {
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = min(j + 2 * t + (r & 1) + (r >> 1) * 8, last_row);
    const char* p = base + static_cast<unsigned>(row) * kRowBytes;
    v[r][0] = load_stream(p);
    v[r][1] = load_stream(p + 128);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 3)
    decode_split(const __nv_bfloat16* query, const __nv_bfloat16* key, const __nv_bfloat16* value,
                 const int* length, float* part_o, float2* part_ml) {
  using namespace problem;
  __shared__ __align__(16) float shared_o[kWarps][4][head_dim];
  __shared__ float shared_m[kWarps][4];
  __shared__ float shared_l[kWarps][4];

  asm volatile("griddepcontrol.launch_dependents;");

  const int b = blockIdx.x / kv_heads;
  const int kvh = blockIdx.x % kv_heads;
  const int slot = blockIdx.y;
  const int len = max(1, min(__ldg(length + b), static_cast<int>(capacity)));
  const int last_split = (len - 1) / kSplit;
  // Whole splits first; the last split of every sequence, often a part, in the last row of the grid.
  int split = slot;
  if (slot == kSplits - 1) {
    split = last_split;
  } else if (slot >= last_split) {
    return;
  }

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int g = lane >> 2;
  const int t = lane & 3;
  const bool up = t >= 2;
  const int start = split * kSplit;
  const int end = min(len, start + kSplit);
  const int last_row = len - 1;
  const float scale_log2 = static_cast<float>(scale * 1.4426950408889634);
  const float minus_infinity = __int_as_float(static_cast<int>(0xff800000u));

  const long long cache_row = 1ll * (b * kv_heads + kvh) * capacity;
  const char* kbase = reinterpret_cast<const char*>(key) + cache_row * kRowBytes + t * 16;
  const char* vbase = reinterpret_cast<const char*>(value) + cache_row * kRowBytes + g * 16;

  float o[8][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) o[i][r] = 0.0f;
  }
  float m0 = kNoMax, m1 = kNoMax;
  float l0 = 0.0f, l1 = 0.0f;

  int j = start + warp * kTile;
  if (j < end) {
    uint4 ka[4], kb[4], v[4][2];
    load_keys(ka, kb, kbase, j, g, last_row);
    load_values(v, vbase, j, t, last_row);
    uint4 q[4];
    {
      const uint4* qp = reinterpret_cast<const uint4*>(
          query + (b * heads + kvh * group + (g & 3)) * head_dim + t * 8);
#pragma unroll
      for (int c = 0; c < 4; ++c) q[c] = __ldg(qp + c * 4);
    }

#pragma unroll 1
    while (true) {
      const int next = j + kStep;
      const bool more = next < end;

      float sa[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      float sb[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        mma16816(sa, ka[c].x, kb[c].x, ka[c].y, kb[c].y, q[c].x, q[c].y);
        mma16816(sb, ka[c].z, kb[c].z, ka[c].w, kb[c].w, q[c].z, q[c].w);
      }
      if (more) load_keys(ka, kb, kbase, next, g, last_row);

      float s0 = (sa[0] + sb[0]) * scale_log2;
      float s1 = (sa[1] + sb[1]) * scale_log2;
      float s2 = (sa[2] + sb[2]) * scale_log2;
      float s3 = (sa[3] + sb[3]) * scale_log2;
      if (j + kTile > len) {
        if (j + g >= len) {
          s0 = minus_infinity;
          s1 = minus_infinity;
        }
        if (j + g + 8 >= len) {
          s2 = minus_infinity;
          s3 = minus_infinity;
        }
      }

      float x0 = fmaxf(s0, s2);
      float x1 = fmaxf(s1, s3);
      if (__any_sync(0xffffffffu, (x0 > m0 + kRaise) || (x1 > m1 + kRaise))) {
#pragma unroll
        for (int w = 4; w < 32; w *= 2) {
          x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, w));
          x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, w));
        }
        const float n0 = fmaxf(m0, x0);
        const float n1 = fmaxf(m1, x1);
        const float f0 = exp2_fast(m0 - n0);
        const float f1 = exp2_fast(m1 - n1);
        m0 = n0;
        m1 = n1;
        l0 *= f0;
        l1 *= f1;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          o[i][0] *= f0;
          o[i][1] *= f1;
          o[i][2] *= f0;
          o[i][3] *= f1;
        }
      }

      const float p0 = exp2_fast(s0 - m0);
      const float p1 = exp2_fast(s1 - m1);
      const float p2 = exp2_fast(s2 - m0);
      const float p3 = exp2_fast(s3 - m1);
      l0 += p0 + p2;
      l1 += p1 + p3;
      const unsigned pb0 = transpose8x8(pack_part(p0, p1, up));
      const unsigned pb1 = transpose8x8(pack_part(p2, p3, up));

#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned w0 = word_of(v[0][h], i);
          const unsigned w1 = word_of(v[1][h], i);
          const unsigned w2 = word_of(v[2][h], i);
          const unsigned w3 = word_of(v[3][h], i);
          const unsigned a0 = __byte_perm(w0, w1, 0x5410);
          const unsigned a1 = __byte_perm(w0, w1, 0x7632);
          const unsigned a2 = __byte_perm(w2, w3, 0x5410);
          const unsigned a3 = __byte_perm(w2, w3, 0x7632);
          mma16816(o[h * 4 + i], a0, a1, a2, a3, pb0, pb1);
        }
      }
      if (!more) break;
      load_values(v, vbase, next, t, last_row);
      j = next;
    }
  }

  // Sums over the keys that lie in other lanes.
#pragma unroll
  for (int w = 4; w < 32; w *= 2) {
    l0 += __shfl_xor_sync(0xffffffffu, l0, w);
    l1 += __shfl_xor_sync(0xffffffffu, l1, w);
  }
  // Columns 4 to 7 hold what the residuals give: add them. The upper lanes keep d from 64 on.
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float keep = up ? o[4 + i][r] : o[i][r];
      const float send = up ? o[i][r] : o[4 + i][r];
      o[i][r] = keep + __shfl_xor_sync(0xffffffffu, send, 2);
    }
  }
  {
    const int q0 = (t & 1) * 2;
    const int d = (up ? 64 : 0) + g * 8;
    float4* row0 = reinterpret_cast<float4*>(&shared_o[warp][q0][d]);
    float4* row1 = reinterpret_cast<float4*>(&shared_o[warp][q0 + 1][d]);
    row0[0] = make_float4(o[0][0], o[0][2], o[1][0], o[1][2]);
    row0[1] = make_float4(o[2][0], o[2][2], o[3][0], o[3][2]);
    row1[0] = make_float4(o[0][1], o[0][3], o[1][1], o[1][3]);
    row1[1] = make_float4(o[2][1], o[2][3], o[3][1], o[3][3]);
    if (g == 0 && !up) {
      shared_m[warp][q0] = m0;
      shared_m[warp][q0 + 1] = m1;
      shared_l[warp][q0] = l0;
      shared_l[warp][q0 + 1] = l1;
    }
  }
  __syncthreads();

  // One warp for each query head of the group, four elements for each lane.
  float top = shared_m[0][warp];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) top = fmaxf(top, shared_m[w][warp]);
  float total = 0.0f;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const float f = exp2_fast(shared_m[w][warp] - top);
    total += f * shared_l[w][warp];
    const float4 part = *reinterpret_cast<const float4*>(&shared_o[w][warp][lane * 4]);
    sum.x += f * part.x;
    sum.y += f * part.y;
    sum.z += f * part.z;
    sum.w += f * part.w;
  }
  const int row = (b * heads + kvh * group + warp) * kSplits + split;
  reinterpret_cast<float4*>(part_o)[row * (head_dim / 4) + lane] = sum;
  if (lane == 0) part_ml[row] = make_float2(top, total);
}

extern "C" __global__ void __launch_bounds__(128)
    merge_splits(const int* length, const float* part_o, const float2* part_ml, __nv_bfloat16* y) {
  using namespace problem;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int head = blockIdx.x * 4 + warp;
  const int b = head / heads;
  const int len = max(1, min(__ldg(length + b), static_cast<int>(capacity)));
  const int count = (len - 1) / kSplit + 1;

  asm volatile("griddepcontrol.wait;" ::: "memory");

  float2 ml[kSplits];
  float4 part[kSplits];
#pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    ml[s] = make_float2(kNoMax, 0.0f);
    part[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (s < count) {
      ml[s] = __ldcg(part_ml + head * kSplits + s);
      part[s] = __ldcg(reinterpret_cast<const float4*>(part_o) +
                       (head * kSplits + s) * (head_dim / 4) + lane);
    }
  }
  float top = ml[0].x;
#pragma unroll
  for (int s = 1; s < kSplits; ++s) top = fmaxf(top, ml[s].x);
  float total = 0.0f;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    const float f = exp2_fast(ml[s].x - top);
    total += f * ml[s].y;
    sum.x += f * part[s].x;
    sum.y += f * part[s].y;
    sum.z += f * part[s].z;
    sum.w += f * part[s].w;
  }
  const float inverse = 1.0f / total;
  uint2 out;
  out.x = pack_bf16(sum.x * inverse, sum.y * inverse);
  out.y = pack_bf16(sum.z * inverse, sum.w * inverse);
  reinterpret_cast<uint2*>(y)[head * (head_dim / 4) + lane] = out;
}
