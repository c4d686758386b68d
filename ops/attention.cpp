#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/operators.h"
#include "ops/oracle.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr const char* oracle_source = R"cuda(
// For a chunk of heads: the operands in float64, keys transposed; weights, exp(score), not divided by
// their row's total; product with v, divided. blockIdx.z counts the heads of the chunk. The scores of the
// problem's inputs and stress inputs, some 200 at most, are far from where exp() overflows, so that nothing
// need be subtracted from them. Tiles of weights above the diagonal are neither written nor read when the
// mask is causal.

constexpr int wide_length = gemm::padded(problem::length, gemm::rows);
constexpr int head_depth = gemm::padded(problem::head_dim, gemm::depth);
constexpr int head_columns = gemm::padded(problem::head_dim, gemm::columns);

__device__ long long head_offset(int head) { return 1ll * head * problem::length * problem::head_dim; }

extern "C" __global__ void widen_q(const half_bits* __restrict__ q, double* __restrict__ wide_q, int first_head) {
  using namespace problem;
  gemm::widen(wide_q, length, head_dim, head_depth, [=](int head, int i, int l) {
    return to_double(q[head_offset(first_head + head) + i * head_dim + l]);
  });
}

extern "C" __global__ void transpose_k(const half_bits* __restrict__ k, double* __restrict__ wide_k, int first_head) {
  using namespace problem;
  gemm::widen(wide_k, head_dim, length, wide_length, [=](int head, int l, int j) {
    return to_double(k[head_offset(first_head + head) + j * head_dim + l]);
  });
}

extern "C" __global__ void widen_v(const half_bits* __restrict__ v, double* __restrict__ wide_v, int first_head) {
  using namespace problem;
  gemm::widen(wide_v, length, head_dim, head_columns, [=](int head, int l, int j) {
    return to_double(v[head_offset(first_head + head) + l * head_dim + j]);
  });
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    attention_weights(const double* __restrict__ wide_q, const double* __restrict__ wide_k,
                      double* __restrict__ weights) {
  using namespace problem;
  const int last_row = (blockIdx.y + 1) * gemm::rows - 1;
  if (causal && blockIdx.x * gemm::columns > last_row) return;
  double* out = weights + 1ll * blockIdx.z * wide_length * wide_length;
  gemm::multiply<false>(wide_q + 1ll * blockIdx.z * wide_length * head_depth, head_depth,
                        wide_k + 1ll * blockIdx.z * head_depth * wide_length, wide_length, head_depth,
                        [=](int i, int j, double sum, double) {
                          const bool visible = j < length && (!causal || j <= i);
                          out[1ll * i * wide_length + j] = visible ? exp(sum * scale) : 0.0;
                        });
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    attention_values(const double* __restrict__ weights, const double* __restrict__ wide_v,
                     double* __restrict__ truth, int first_head) {
  using namespace problem;
  double* out = truth + head_offset(first_head + blockIdx.z);
  const int visible = causal ? (blockIdx.y + 1) * gemm::rows : wide_length;
  gemm::multiply<true>(weights + 1ll * blockIdx.z * wide_length * wide_length, wide_length,
                       wide_v + 1ll * blockIdx.z * wide_length * head_columns, head_columns, visible,
                       [=](int i, int j, double sum, double total) {
                         if (i < length && j < head_dim) out[i * head_dim + j] = sum / total;
                       });
}
)cuda";

constexpr const char* scaffold_source = R"cuda(#include <cuda_fp16.h>

#include "problem.h"

// A warp makes one row of o with a running softmax: when a larger score comes, what was summed so far is
// scaled down. A lane holds every 32nd element of the row.
extern "C" __global__ void attention(const __half* q, const __half* k, const __half* v, __half* o) {
  using namespace problem;
  constexpr int warp = 32, per_lane = head_dim / warp;
  static_assert(head_dim % warp == 0);
  const long long row = 1ll * blockIdx.x * (blockDim.x / warp) + threadIdx.x / warp;
  const int lane = threadIdx.x % warp;
  if (row >= 1ll * batch * heads * length) return;
  const long long head = row / length * length * head_dim;
  const int visible = causal ? row % length + 1 : length;

  float query[per_lane], sum[per_lane] = {};
  for (int d = 0; d < per_lane; ++d) query[d] = q[row * head_dim + d * warp + lane];
  float largest = __int_as_float(0xff800000), total = 0.0f;  // minus infinity
  for (int j = 0; j < visible; ++j) {
    float score = 0.0f;
    for (int d = 0; d < per_lane; ++d) {
      score += query[d] * float(k[head + 1ll * j * head_dim + d * warp + lane]);
    }
    for (int step = warp / 2; step > 0; step /= 2) {
      score += __shfl_xor_sync(0xffffffffu, score, step);
    }
    score *= float(scale);
    const float next = fmaxf(largest, score);
    const float shrink = expf(largest - next), weight = expf(score - next);
    largest = next;
    total = total * shrink + weight;
    for (int d = 0; d < per_lane; ++d) {
      sum[d] = sum[d] * shrink + weight * float(v[head + 1ll * j * head_dim + d * warp + lane]);
    }
  }
  for (int d = 0; d < per_lane; ++d) o[row * head_dim + d * warp + lane] = sum[d] / total;
}
)cuda";

std::vector<double> host_oracle(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t heads = problem.attribute("batch") * problem.attribute("heads");
  const std::int64_t length = problem.attribute("length");
  const std::int64_t head_dim = problem.attribute("head_dim");
  const bool causal = problem.attribute("causal") != 0;
  const double scale = problem.real_attribute("scale");
  const std::vector<double>& q = inputs.at("q");
  const std::vector<double>& k = inputs.at("k");
  const std::vector<double>& v = inputs.at("v");
  std::vector<double> o(q.size(), 0.0);

  const auto attend = [&](std::int64_t head, std::int64_t row) {
    const std::int64_t base = head * length * head_dim;
    const std::int64_t visible = causal ? row + 1 : length;
    std::vector<double> weight(static_cast<std::size_t>(visible), 0.0);
    for (std::int64_t j = 0; j < visible; ++j) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        weight[j] += q[base + row * head_dim + d] * k[base + j * head_dim + d];
      }
      weight[j] *= scale;
    }
    const double largest = *std::max_element(weight.begin(), weight.end());
    double sum = 0.0;
    for (double& value : weight) sum += value = std::exp(value - largest);
    for (std::int64_t j = 0; j < visible; ++j) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        o[base + row * head_dim + d] += weight[j] / sum * v[base + j * head_dim + d];
      }
    }
  };
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < length; ++row) attend(head, row);
  }
  return o;
}

Program device_oracle(const AttentionSizes& sizes, std::int64_t workspace_bytes) {
  constexpr std::int64_t max_grid_z = 65535;
  const std::int64_t heads = sizes.batch * sizes.heads;
  const std::int64_t bytes = size_in_bytes(DType::f64);
  const std::int64_t length = padded_rows(sizes.length), depth = padded_depth(sizes.head_dim);
  const std::int64_t columns = padded_columns(sizes.head_dim);
  const std::int64_t head_bytes = length * (length + 2 * depth + columns) * bytes;
  const std::int64_t chunk =
      std::clamp<std::int64_t>(workspace_bytes / head_bytes, 1, std::min(heads, max_grid_z));

  Program program;
  program.source = "#include \"problem.h\"\n" + gemm_source() + oracle_source;
  program.workspaces = {{"wide_q", chunk * length * depth * bytes},
                        {"wide_k", chunk * depth * length * bytes},
                        {"wide_v", chunk * length * columns * bytes},
                        {"weights", chunk * length * length * bytes}};
  for (std::int64_t first = 0; first < heads; first += chunk) {
    const std::int64_t count = std::min(chunk, heads - first);
    const auto with_first_head = [first](const std::vector<std::string>& names) {
      std::vector<Argument> arguments = buffers(names);
      arguments.push_back(ScalarArgument{static_cast<std::int32_t>(first)});
      return arguments;
    };
    program.steps.push_back(
        widen_launch("widen_q", length, depth, count, with_first_head({"q", "wide_q"})));
    program.steps.push_back(
        widen_launch("transpose_k", depth, length, count, with_first_head({"k", "wide_k"})));
    program.steps.push_back(
        widen_launch("widen_v", length, columns, count, with_first_head({"v", "wide_v"})));
    program.steps.push_back(gemm_launch("attention_weights", length, length, count,
                                        buffers({"wide_q", "wide_k", "weights"})));
    program.steps.push_back(gemm_launch("attention_values", sizes.length, sizes.head_dim, count,
                                        with_first_head({"weights", "wide_v", "truth"})));
  }
  return program;
}

Program scaffold(const AttentionSizes& sizes) {
  constexpr std::int64_t warps = 8;
  Program program;
  program.source = scaffold_source;
  program.steps = {simple_launch("attention",
                                 ceil_div(sizes.batch * sizes.heads * sizes.length, warps), 1,
                                 32 * warps, buffers({"q", "k", "v", "o"}))};
  return program;
}

// Scales at which the output stays a normal FP16 number.
std::vector<StressCase> stress_cases() {
  const auto normal = [](double deviation) {
    return Distribution{Distribution::Kind::normal, 0.0, deviation};
  };
  const auto constant = [](double value) {
    return Distribution{Distribution::Kind::constant, value};
  };
  return {
      {"large_scores", {{"q", normal(30.0)}}}, {"small_scores", {{"q", normal(1e-3)}}},
      {"v_scaled_0.1", {{"v", normal(0.1)}}},  {"v_scaled_1e3", {{"v", normal(1e3)}}},
      {"equal_keys", {{"k", constant(1.0)}}},  {"zeros", {{"v", constant(0.0)}}},
  };
}

Problem make_attention(const AttentionSizes& sizes, bool causal, std::int64_t workspace_bytes) {
  const std::vector<std::int64_t> shape = {sizes.batch, sizes.heads, sizes.length, sizes.head_dim};
  const std::int64_t pairs =
      causal ? sizes.length * (sizes.length + 1) / 2 : sizes.length * sizes.length;
  Problem problem;
  problem.tensors = {{"q", DType::f16, shape, Role::input},
                     {"k", DType::f16, shape, Role::input},
                     {"v", DType::f16, shape, Role::input},
                     {"o", DType::f16, shape, Role::output}};
  problem.attributes = {{"batch", sizes.batch},
                        {"heads", sizes.heads},
                        {"length", sizes.length},
                        {"head_dim", sizes.head_dim},
                        {"causal", std::int64_t{causal}},
                        {"scale", 1.0 / std::sqrt(static_cast<double>(sizes.head_dim))}};
  problem.stress_cases = stress_cases();
  // A row rounds by 5e-4 of itself where weights and outputs are FP16, by 4e-3 where weights are
  // BF16. Under the causal mask the last rows are small beside the first, which set the scale of
  // the bounds on the whole: there a row without one of its 4096 keys, 1.6e-2 off, would go unseen.
  problem.invariants = {row_error_invariant(problem.output(), 1e-2)};
  problem.min_bytes = bytes_moved_once(problem.tensors);
  problem.operations = 4 * sizes.batch * sizes.heads * pairs * sizes.head_dim;
  problem.matrix_products = 1;
  add_uneven_cases(problem, sizes.head_dim);
  // Two products a head, one of them along the head's dimension alone, which is too short for
  // Strassen's method; what the mask leaves out is in neither number.
  problem.fewest_matrix_operations = problem.operations;
  problem.pytorch = "F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), scale=scale)";
  problem.host_oracle = host_oracle;
  problem.device_oracle = device_oracle(sizes, workspace_bytes);
  problem.scaffold = scaffold(sizes);
  return problem;
}

}  // namespace

Problem make_attention_fp16(const AttentionSizes& sizes, std::int64_t workspace_bytes) {
  Problem problem = make_attention(sizes, false, workspace_bytes);
  problem.id = "attention_fp16";
  problem.title = "scaled dot-product attention, FP16";
  // Weights and outputs rounded to FP16 give 4e-4 of the rms together; the largest output, 5.7
  // times the rms, rounds by at most 2.4e-3 of it. An output that passed through BF16 has 1.6e-3; a
  // key tile that one tile of queries skips gives 4e-3.
  problem.tolerance.rms_error_over_rms = 9e-4;
  problem.tolerance.max_error_over_rms = 2e-2;
  return problem;
}

Problem make_attention_fp16_causal(const AttentionSizes& sizes, std::int64_t workspace_bytes) {
  Problem problem = make_attention(sizes, true, workspace_bytes);
  problem.id = "attention_fp16_causal";
  problem.title = "scaled dot-product attention with causal mask, FP16";
  // The first rows average few values: the largest outputs are 70 times the rms of all, and their
  // rounding to FP16 alone is 3e-2 of it. The rms error is as without the mask.
  problem.tolerance.rms_error_over_rms = 9e-4;
  problem.tolerance.max_error_over_rms = 0.15;
  return problem;
}

Problem make_attention_fp16() { return make_attention_fp16(catalog_attention); }
Problem make_attention_fp16_causal() { return make_attention_fp16_causal(catalog_attention); }

}  // namespace rekernel
