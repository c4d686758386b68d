#include "ops/definition/device_prelude.h"

#include <algorithm>
#include <array>

#include "ops/definition/expression_code.h"

namespace rekernel::definition {

namespace {

/// A function of ours, kept if the kernels or a later function of the table name it.
struct Piece {
  const char* name;
  const char* text;
};

// Each may use those above it.
constexpr std::array<Piece, 22> pieces = {{
    {"added", R"cuda(
__device__ real added(real a, real b) { return a + b; }
)cuda"},
    {"multiplied", R"cuda(
__device__ real multiplied(real a, real b) { return a * b; }
)cuda"},
    {"larger", R"cuda(
// A NaN stays one.
template <class T>
__device__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
)cuda"},
    {"smaller", R"cuda(
// A NaN stays one.
template <class T>
__device__ T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
)cuda"},
    {"square", R"cuda(
__device__ real square(real x) { return x * x; }
)cuda"},
    {"cube", R"cuda(
__device__ real cube(real x) { return x * x * x; }
)cuda"},
    {"smaller_place", R"cuda(
__device__ index_t smaller_place(index_t a, index_t b) { return a < b ? a : b; }
)cuda"},
    {"larger_place", R"cuda(
__device__ index_t larger_place(index_t a, index_t b) { return a > b ? a : b; }
)cuda"},
    {"floor_divide", R"cuda(
// Rounds down, for b > 0.
__device__ index_t floor_divide(index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
)cuda"},
    {"floor_modulo", R"cuda(
// From 0 to b - 1, for b > 0.
__device__ index_t floor_modulo(index_t a, index_t b) { return a % b < 0 ? a % b + b : a % b; }
)cuda"},
    {"to_real", R"cuda(
template <class T>
__device__ real to_real(T value) {
  return static_cast<real>(static_cast<float>(value));
}
)cuda"},
    {"from_real", R"cuda(
template <class T>
__device__ T from_real(real value) {
  return T(value);
}
)cuda"},
    {"as_f16", R"cuda(
__device__ real as_f16(real x) { return static_cast<float>(__half(x)); }
)cuda"},
    {"as_bf16", R"cuda(
__device__ real as_bf16(real x) { return static_cast<float>(__nv_bfloat16(x)); }
)cuda"},
    {"as_f8e4m3", R"cuda(
__device__ real as_f8e4m3(real x) { return static_cast<float>(__nv_fp8_e4m3(x)); }
)cuda"},
    {"as_f8e5m2", R"cuda(
__device__ real as_f8e5m2(real x) { return static_cast<float>(__nv_fp8_e5m2(x)); }
)cuda"},
    {"Best", R"cuda(
// A value and where it stands.
struct Best {
  real value;
  index_t place;
};
)cuda"},
    {"larger_of", R"cuda(
// Of equal values the first; a NaN is the largest.
__device__ Best larger_of(Best a, Best b) {
  if (a.value != a.value) return b.value != b.value && b.place < a.place ? b : a;
  return b.value > a.value || b.value != b.value || (b.value == a.value && b.place < a.place) ? b : a;
}
__device__ Best later_larger(Best a, Best b) { return b.value > a.value || b.value != b.value ? b : a; }
)cuda"},
    {"smaller_of", R"cuda(
// Of equal values the first; a NaN is the smallest.
__device__ Best smaller_of(Best a, Best b) {
  if (a.value != a.value) return b.value != b.value && b.place < a.place ? b : a;
  return b.value < a.value || b.value != b.value || (b.value == a.value && b.place < a.place) ? b : a;
}
__device__ Best later_smaller(Best a, Best b) { return b.value < a.value || b.value != b.value ? b : a; }
)cuda"},
    {"over_lanes", R"cuda(
// Combines a value of each of `lanes` threads that lie side by side; all of them get the result.
template <int lanes, class T, class Combine>
__device__ T over_lanes(T mine, Combine combine) {
  __shared__ T all[256];
  T* own = all + threadIdx.x / lanes * lanes;
  const int lane = threadIdx.x % lanes;
  own[lane] = mine;
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (lanes > 32) __syncthreads(); else __syncwarp();
    if (lane < half) own[lane] = combine(own[lane], own[lane + half]);
  }
  if (lanes > 32) __syncthreads(); else __syncwarp();
  const T result = own[0];
  if (lanes > 32) __syncthreads(); else __syncwarp();
  return result;
}
)cuda"},
    {"multiply_tiles", R"cuda(
// Elements of a product: store(i, j, sum over l of left(i, l) * right(l, j)) for the 64 x 64 of this block
// of 256 threads, 4 x 4 of them a thread, from tiles in shared memory. Neighbouring threads load along the
// depth where a factor lies so. 256 terms are added up before they join the sum.
template <bool left_along_depth, bool right_along_depth, class Left, class Right, class Store>
__device__ void multiply_tiles(long long rows, long long columns, long long depth, Left left, Right right,
                               Store store) {
  constexpr int tile = 64, step = 16, terms = 256;
  __shared__ real left_tile[step][tile + 1], right_tile[step][tile + 1];
  const long long first_row = 1ll * blockIdx.y * tile, first_column = 1ll * blockIdx.x * tile;
  const int thread = threadIdx.x, down = thread / 16, across = thread % 16;
  real sum[4][4] = {}, part[4][4] = {};
  for (long long start = 0; start < depth; start += step) {
    for (int i = thread; i < tile * step; i += 256) {
      const int place = left_along_depth ? i / step : i % tile, l = left_along_depth ? i % step : i / tile;
      const bool inside = first_row + place < rows && start + l < depth;
      left_tile[l][place] = inside ? left(first_row + place, start + l) : real(0);
    }
    for (int i = thread; i < tile * step; i += 256) {
      const int place = right_along_depth ? i / step : i % tile, l = right_along_depth ? i % step : i / tile;
      const bool inside = first_column + place < columns && start + l < depth;
      right_tile[l][place] = inside ? right(start + l, first_column + place) : real(0);
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < step; ++l) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) part[i][j] += left_tile[l][down + 16 * i] * right_tile[l][across + 16 * j];
      }
    }
    __syncthreads();
    if ((start + step) % terms != 0 && start + step < depth) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sum[i][j] += part[i][j];
        part[i][j] = 0;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long row = first_row + down + 16 * i, column = first_column + across + 16 * j;
      if (row < rows && column < columns) store(row, column, sum[i][j]);
    }
  }
}
)cuda"},
    {"scan", R"cuda(
// Of a value of each thread of a block: all before it, those with it, and all.
struct Scanned {
  real before, here, all;
};
template <class Combine>
__device__ Scanned scan(real mine, real first, Combine combine) {
  __shared__ real of_threads[256];
  const int thread = threadIdx.x;
  of_threads[thread] = mine;
  __syncthreads();
  for (int distance = 1; distance < 256; distance *= 2) {
    const real before = thread >= distance ? of_threads[thread - distance] : first;
    __syncthreads();
    mine = combine(before, mine);
    of_threads[thread] = mine;
    __syncthreads();
  }
  const Scanned result = {thread > 0 ? of_threads[thread - 1] : first, mine, of_threads[255]};
  __syncthreads();
  return result;
}
)cuda"},
}};

bool has(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

bool needs(const std::string& text, const Piece& piece) {
  const std::string name = piece.name;
  if (name == "larger_of" && has(text, "later_larger")) return true;
  if (name == "smaller_of" && has(text, "later_smaller")) return true;
  return has(text, name);
}

}  // namespace

std::string device_prelude(const Definition& definition, Purpose purpose,
                           const std::string& kernels) {
  std::string used;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (needs(kernels + used, *piece)) used = piece->text + used;
  }
  const std::string all = used + kernels;
  std::string text;
  if (has(all, "__half")) text += "#include <cuda_fp16.h>\n";
  if (has(all, "__nv_bfloat16")) text += "#include <cuda_bf16.h>\n";
  if (has(all, "__nv_fp8_e4m3") || has(all, "__nv_fp8_e5m2")) text += "#include <cuda_fp8.h>\n";
  text += std::string(text.empty() ? "" : "\n") + "#include \"problem.h\"\n\n";
  text +=
      std::string("using real = ") + (purpose == Purpose::candidate ? "float" : "double") + ";\n";
  text += std::string("using index_t = ") + (needs_long_indices(definition) ? "long long" : "int") +
          ";\n";
  if (has(all, "INFINITY")) {
    text += "\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n";
  }
  return text + used;
}

}  // namespace rekernel::definition
