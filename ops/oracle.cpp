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

constexpr int rows = 128, columns = 64, depth = 16, threads = 256;

// For this block's tile of the m x n result: store(i, j, sum over l < k of a(i, l) * b(l, j)).
// A thread makes 8 rows by 4 columns; a pitch of two doubles more than the tile keeps 16-byte alignment
// and spreads the transposing stores over the banks. The operands are asked for along l where they lie
// contiguous along it (a always, b when `b_along_depth`), so that global reads are coalesced.
template <bool b_along_depth, class A, class B, class Store>
__device__ __forceinline__ void multiply(int m, int n, int k, A a, B b, Store store) {
  __shared__ __align__(16) double a_tile[depth][rows + 2];
  __shared__ __align__(16) double b_tile[depth][columns + 2];
  const int thread = threadIdx.x;
  const int column_pair = 2 * (thread % 16), row_group = 8 * (thread / 16);
  const int first_row = blockIdx.y * rows, first_column = blockIdx.x * columns;

  double sum[8][4] = {};
  for (int start = 0; start < k; start += depth) {
#pragma unroll
    for (int part = 0; part < rows * depth / threads; ++part) {
      const int l = thread % depth, i = thread / depth + part * (threads / depth);
      const bool inside = first_row + i < m && start + l < k;
      a_tile[l][i] = inside ? a(first_row + i, start + l) : 0.0;
    }
#pragma unroll
    for (int part = 0; part < columns * depth / threads; ++part) {
      const int l = b_along_depth ? thread % depth : thread / columns + part * (threads / columns);
      const int j = b_along_depth ? thread / depth + part * (threads / depth) : thread % columns;
      const bool inside = start + l < k && first_column + j < n;
      b_tile[l][j] = inside ? b(start + l, first_column + j) : 0.0;
    }
    __syncthreads();
#pragma unroll 2
    for (int l = 0; l < depth; ++l) {
      double left[8], right[4];
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const double2 pair = *reinterpret_cast<const double2*>(&a_tile[l][row_group + i]);
        left[i] = pair.x, left[i + 1] = pair.y;
      }
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        const double2 pair = *reinterpret_cast<const double2*>(&b_tile[l][column_pair + 16 * j]);
        right[j] = pair.x, right[j + 1] = pair.y;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = first_row + row_group + i;
      const int column = first_column + column_pair + 32 * (j / 2) + j % 2;
      if (row < m && column < n) store(row, column, sum[i][j]);
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
