#include "ops/oracle.h"

namespace rekernel {

namespace {

constexpr std::int64_t gemm_rows = 128;    // gemm::rows below
constexpr std::int64_t gemm_columns = 64;  // gemm::columns below

}  // namespace

std::string gemm_source() {
  return R"cuda(
struct half_bits {
  unsigned short bits;
};

__device__ __forceinline__ double to_double(float value) { return value; }
__device__ __forceinline__ double to_double(half_bits value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}

namespace gemm {

constexpr int rows = 128, columns = 64, depth = 8, threads = 256;

// sum += a * b by the matrix unit, in float64: 16 x 8, 16 x 8 and 8 x 8 elements over the lanes of a warp
// as the instruction's fragments have them. Lane 4 * g + t holds the elements (g + 8 * (e % 2), t + 4 *
// (e / 2)) of a, (t + 4 * e, g) of b, and (g + 8 * (e / 2), 2 * t + e % 2) of the sum.
__device__ __forceinline__ void multiply_fragments(double (&sum)[4], const double (&a)[4],
                                                   const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sum[2 * (e % 2)]), "+d"(sum[2 * (e % 2) + 1])
        : "d"(a[e]), "d"(b[e / 2]));
  }
#endif
}

// For this block's tile of the m x n result: store(i, j, sum over l < k of a(i, l) * b(l, j)).
// A warp makes 32 x 32 elements. Two slots of shared memory: what is multiplied next is on its way
// while the present one is. Pitches of four doubles more than a multiple of 16 spread a fragment's
// reads over all banks. The operands are asked for along l where they lie contiguous along it (a
// always, b when `b_along_depth`), so that global reads are coalesced.
template <bool b_along_depth, class A, class B, class Store>
__device__ __forceinline__ void multiply(int m, int n, int k, A a, B b, Store store) {
  constexpr int pitch = depth + 4;
  constexpr int b_step_l = b_along_depth ? 1 : columns + 4, b_step_j = b_along_depth ? pitch : 1;
  __shared__ double a_tile[2][rows * pitch];
  __shared__ double b_tile[2][b_along_depth ? columns * pitch : depth * (columns + 4)];
  const int thread = threadIdx.x, group = thread % 32 / 4, member = thread % 4;
  const int warp_row = thread / 32 % 4 * 32, warp_column = thread / 32 / 4 * 32;
  const int first_row = blockIdx.y * rows, first_column = blockIdx.x * columns;
  constexpr int a_parts = rows * depth / threads, b_parts = columns * depth / threads;
  const int a_l = thread % depth, a_i = thread / depth;
  const int b_l = b_along_depth ? thread % depth : thread / columns;
  const int b_j = b_along_depth ? thread / depth : thread % columns;
  constexpr int a_stride = threads / depth, b_stride_l = b_along_depth ? 0 : threads / columns,
                b_stride_j = b_along_depth ? threads / depth : 0;

  double a_next[a_parts], b_next[b_parts];
  const auto fetch = [&](int start) {
#pragma unroll
    for (int part = 0; part < a_parts; ++part) {
      const int i = first_row + a_i + part * a_stride, l = start + a_l;
      a_next[part] = i < m && l < k ? a(i, l) : 0.0;
    }
#pragma unroll
    for (int part = 0; part < b_parts; ++part) {
      const int l = start + b_l + part * b_stride_l, j = first_column + b_j + part * b_stride_j;
      b_next[part] = l < k && j < n ? b(l, j) : 0.0;
    }
  };
  const auto put = [&](int slot) {
#pragma unroll
    for (int part = 0; part < a_parts; ++part) {
      a_tile[slot][(a_i + part * a_stride) * pitch + a_l] = a_next[part];
    }
#pragma unroll
    for (int part = 0; part < b_parts; ++part) {
      b_tile[slot][(b_l + part * b_stride_l) * b_step_l + (b_j + part * b_stride_j) * b_step_j] =
          b_next[part];
    }
  };

  double sum[2][4][4] = {};
  fetch(0);
  put(0);
  __syncthreads();
  for (int start = 0, slot = 0; start < k; start += depth, slot ^= 1) {
    const bool more = start + depth < k;
    if (more) fetch(start + depth);
    double left[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = warp_row + 16 * i + group + 8 * (e % 2);
        left[i][e] = a_tile[slot][row * pitch + member + 4 * (e / 2)];
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      double right[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = warp_column + 8 * j + group;
        right[e] = b_tile[slot][(member + 4 * e) * b_step_l + column * b_step_j];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_fragments(sum[i][j], left[i], right);
    }
    if (more) put(slot ^ 1);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = first_row + warp_row + 16 * i + group + 8 * (e / 2);
        const int column = first_column + warp_column + 8 * j + 2 * member + e % 2;
        if (row < m && column < n) store(row, column, sum[i][j][e]);
      }
    }
  }
}

}  // namespace gemm
)cuda";
}

KernelLaunch gemm_launch(const std::string& kernel, std::int64_t rows, std::int64_t columns,
                         std::int64_t batch, std::vector<Argument> args) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid = {GridExtent{ceil_div(columns, gemm_columns)}, GridExtent{ceil_div(rows, gemm_rows)},
                 GridExtent{batch}};
  launch.block = {256, 1, 1};
  launch.args = std::move(args);
  return launch;
}

std::string block_reduction_source() {
  return R"cuda(
namespace block {

struct Add {
  __device__ double operator()(double x, double y) const { return x + y; }
};
struct Larger {
  __device__ double operator()(double x, double y) const { return x < y ? y : x; }
};

template <class Combine>
__device__ double reduce(double value, Combine combine) {
  __shared__ double of_warp[32];
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  __syncthreads();  // an earlier call's results may still be being read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp) value = combine(value, of_warp[warp]);
  return value;
}

__device__ double sum(double value) { return reduce(value, Add{}); }
__device__ double maximum(double value) { return reduce(value, Larger{}); }

}  // namespace block
)cuda";
}

Invariant row_error_invariant(const Tensor& output, double bound) {
  constexpr std::int64_t threads = 128;
  const std::int64_t columns = output.shape.back();
  const std::int64_t rows = output.elements() / columns;
  Invariant invariant;
  invariant.name = "relative error of a row";
  invariant.bound = bound;
  Program& program = invariant.program;
  program.source = gemm_source() + block_reduction_source() + R"cuda(
#ifdef ELEMENT_IS_HALF
using element = half_bits;
#else
using element = float;
#endif

extern "C" __global__ void __launch_bounds__(128)
    row_error(const element* __restrict__ output, const double* __restrict__ truth,
              double* __restrict__ row_errors) {
  const long long start = 1ll * blockIdx.x * COLUMNS;
  double error_squares = 0.0, truth_squares = 0.0;
  for (int i = threadIdx.x; i < COLUMNS; i += blockDim.x) {
    const double error = to_double(output[start + i]) - truth[start + i];
    error_squares += error * error;
    truth_squares += truth[start + i] * truth[start + i];
  }
  error_squares = block::sum(error_squares);
  truth_squares = block::sum(truth_squares);
  if (threadIdx.x != 0) return;
  const double ratio = error_squares == 0.0 ? 0.0 : sqrt(error_squares / truth_squares);
  // A maximum could drop a NaN; infinity stays.
  row_errors[blockIdx.x] = ratio == ratio ? ratio : __longlong_as_double(0x7ff0000000000000ll);
}

extern "C" __global__ void __launch_bounds__(128)
    largest_row_error(const double* __restrict__ row_errors, double* __restrict__ violation) {
  double largest = 0.0;
  for (int i = threadIdx.x; i < ROWS; i += blockDim.x) largest = fmax(largest, row_errors[i]);
  largest = block::maximum(largest);
  if (threadIdx.x == 0) *violation = largest;
}
)cuda";
  if (output.dtype == DType::f16) program.compile.defines.emplace("ELEMENT_IS_HALF", "1");
  program.compile.defines.emplace("COLUMNS", std::to_string(columns));
  program.compile.defines.emplace("ROWS", std::to_string(rows));
  program.workspaces = {{"row_errors", rows * size_in_bytes(DType::f64)}};
  program.steps = {
      simple_launch("row_error", rows, 1, threads, buffers({output.name, "truth", "row_errors"})),
      simple_launch("largest_row_error", 1, 1, threads, buffers({"row_errors", "violation"}))};
  return invariant;
}

KernelLaunch simple_launch(const std::string& kernel, std::int64_t blocks_x, std::int64_t blocks_y,
                           std::int64_t threads, std::vector<Argument> args) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid = {GridExtent{blocks_x}, GridExtent{blocks_y}, GridExtent{1}};
  launch.block = {threads, 1, 1};
  launch.args = std::move(args);
  return launch;
}

std::vector<Argument> buffers(const std::vector<std::string>& names) {
  std::vector<Argument> arguments;
  for (const std::string& name : names) arguments.push_back(BufferArgument{name});
  return arguments;
}

std::int64_t bytes_moved_once(const std::vector<Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

}  // namespace rekernel
