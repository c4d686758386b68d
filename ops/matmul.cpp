#include "ops/operators.h"
#include "ops/oracle.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr const char* oracle_source = R"cuda(
#ifdef ELEMENT_IS_HALF
using element = half_bits;
#else
using element = float;
#endif

constexpr int wide_k = gemm::padded(problem::k, gemm::depth);
constexpr int wide_n = gemm::padded(problem::n, gemm::columns);

extern "C" __global__ void widen_a(const element* __restrict__ a, double* __restrict__ wide_a) {
  using namespace problem;
  gemm::widen(wide_a, m, k, wide_k, [=](int, int i, int l) { return to_double(a[1ll * i * k + l]); });
}

extern "C" __global__ void widen_b(const element* __restrict__ b, double* __restrict__ wide_b) {
  using namespace problem;
  gemm::widen(wide_b, k, n, wide_n, [=](int, int l, int j) { return to_double(b[1ll * l * n + j]); });
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    matmul_oracle(const double* __restrict__ wide_a, const double* __restrict__ wide_b,
                  double* __restrict__ truth) {
  using namespace problem;
  gemm::multiply<false>(wide_a, wide_k, wide_b, wide_n, wide_k, [=](int i, int j, double sum, double) {
    if (i < m && j < n) truth[1ll * i * n + j] = sum;
  });
}
)cuda";

constexpr const char* scaffold_source = R"cuda(
// A thread makes one element of c. FP32 sums.
extern "C" __global__ void matmul(const element* a, const element* b, element* c) {
  using namespace problem;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    sum += float(a[1ll * row * k + i]) * float(b[1ll * i * n + column]);
  }
  c[1ll * row * n + column] = sum;
}
)cuda";

std::vector<double> host_oracle(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t m = problem.attribute("m");
  const std::int64_t n = problem.attribute("n");
  const std::int64_t k = problem.attribute("k");
  const std::vector<double>& a = inputs.at("a");
  const std::vector<double>& b = inputs.at("b");
  std::vector<double> c(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

Program device_oracle(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t bytes = size_in_bytes(DType::f64);
  const std::int64_t wide_m = padded_rows(m), wide_n = padded_columns(n), wide_k = padded_depth(k);
  Program program;
  program.source = "#include \"problem.h\"\n" + gemm_source() + oracle_source;
  if (dtype == DType::f16) program.compile.defines.emplace("ELEMENT_IS_HALF", "1");
  program.workspaces = {{"wide_a", wide_m * wide_k * bytes}, {"wide_b", wide_k * wide_n * bytes}};
  program.steps = {widen_launch("widen_a", wide_m, wide_k, 1, buffers({"a", "wide_a"})),
                   widen_launch("widen_b", wide_k, wide_n, 1, buffers({"b", "wide_b"})),
                   gemm_launch("matmul_oracle", m, n, 1, buffers({"wide_a", "wide_b", "truth"}))};
  return program;
}

Program scaffold(DType dtype, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t tile = 16;
  Program program;
  program.source =
      dtype == DType::f16
          ? "#include <cuda_fp16.h>\n\n#include \"problem.h\"\n\nusing element = __half;\n"
          : "#include \"problem.h\"\n\nusing element = float;\n";
  program.source += scaffold_source;
  KernelLaunch launch =
      simple_launch("matmul", ceil_div(n, tile), ceil_div(m, tile), tile, buffers({"a", "b", "c"}));
  launch.block[1] = tile;
  program.steps = {launch};
  return program;
}

Problem make_matmul(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.tensors = {{"a", dtype, {m, k}, Role::input},
                     {"b", dtype, {k, n}, Role::input},
                     {"c", dtype, {m, n}, Role::output}};
  problem.attributes = {{"m", m}, {"n", n}, {"k", k}};
  problem.min_bytes = bytes_moved_once(problem.tensors);
  problem.operations = 2 * m * n * k;
  problem.fewest_matrix_operations = fewest_product_operations(m, n, k);
  problem.pytorch = "torch.matmul(a, b)";
  problem.host_oracle = host_oracle;
  problem.device_oracle = device_oracle(dtype, m, n, k);
  problem.scaffold = scaffold(dtype, m, n);
  return problem;
}

Distribution normal(double deviation) { return {Distribution::Kind::normal, 0.0, deviation}; }
Distribution constant(double value) { return {Distribution::Kind::constant, value}; }

}  // namespace

Problem make_matmul_fp32(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem = make_matmul(DType::f32, m, n, k);
  problem.id = "matmul_fp32";
  problem.title = "matrix product, FP32";
  problem.matrix_products = 2;
  // Two FP16 products that split the operands reach 1.4e-5 and 1.0e-4 of the truth's rms at k =
  // 4096; a single FP16 or TF32 product gives 3.0e-4 and 1.7e-3 and must fail. The bounds lie
  // between.
  problem.tolerance.rms_error_over_rms = 1e-4;
  problem.tolerance.max_error_over_rms = 6e-4;
  problem.stress_cases = {
      {"a_scaled_1e-4", {{"a", normal(1e-4)}}},
      {"a_scaled_1e4", {{"a", normal(1e4)}}},
      {"b_scaled_1e-4", {{"b", normal(1e-4)}}},
      {"b_scaled_1e4", {{"b", normal(1e4)}}},
      {"constant", {{"a", constant(0.1)}, {"b", constant(0.3)}}},
      {"zeros", {{"a", constant(0.0)}}},
  };
  add_uneven_cases(problem, k);
  return problem;
}

Problem make_matmul_fp16(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem = make_matmul(DType::f16, m, n, k);
  problem.id = "matmul_fp16";
  problem.title = "matrix product, FP16";
  problem.matrix_products = 1;
  // Rounding the result to FP16 gives 2.8e-4 of the rms at most; half a unit in the last place of
  // the largest result (5.7 times the rms) is 2e-3 of it. FP32 sums add little; FP16 sums give a
  // percent, a result that passed through BF16 1.6e-3.
  problem.tolerance.rms_error_over_rms = 7e-4;
  problem.tolerance.max_error_over_rms = 1e-2;
  // Scales at which the result (rms 64 · scale) stays a normal FP16 number.
  problem.stress_cases = {
      {"a_scaled_1e-2", {{"a", normal(1e-2)}}},
      {"a_scaled_50", {{"a", normal(50)}}},
      {"b_scaled_1e-2", {{"b", normal(1e-2)}}},
      {"b_scaled_50", {{"b", normal(50)}}},
      {"constant", {{"a", constant(0.1)}, {"b", constant(0.3)}}},
      {"zeros", {{"a", constant(0.0)}}},
  };
  add_uneven_cases(problem, k);
  return problem;
}

Problem make_matmul_fp32() { return make_matmul_fp32(4096, 4096, 4096); }
Problem make_matmul_fp16() { return make_matmul_fp16(4096, 4096, 4096); }

}  // namespace rekernel
