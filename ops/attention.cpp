#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/operators.h"
#include "ops/oracle.h"

namespace rekernel {

namespace {

constexpr std::int64_t threads = 256;

constexpr const char* oracle_source = R"cuda(
// Three launches for a chunk of heads: scores (of the chunk, length x length each); weights in their
// place, not yet divided by a row's total; product with v. blockIdx.z, or blockIdx.y of the weights,
// counts the heads of the chunk. Scores above the diagonal are neither written nor read when the mask is
// causal.

__device__ long long head_offset(int head) { return 1ll * head * problem::length * problem::head_dim; }
__device__ long long score_offset(int chunk_head) {
  return 1ll * chunk_head * problem::length * problem::length;
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    attention_scores(const half_bits* __restrict__ q, const half_bits* __restrict__ k,
                     double* __restrict__ scores, int first_head) {
  using namespace problem;
  const int last_row = (blockIdx.y + 1) * gemm::rows - 1;
  if (causal && blockIdx.x * gemm::columns > last_row) return;
  const half_bits* q_head = q + head_offset(first_head + blockIdx.z);
  const half_bits* k_head = k + head_offset(first_head + blockIdx.z);
  double* out = scores + score_offset(blockIdx.z);
  gemm::multiply<true>(
      length, length, head_dim, [=](int i, int l) { return to_double(q_head[i * head_dim + l]); },
      [=](int l, int j) { return to_double(k_head[j * head_dim + l]); },
      [=](int i, int j, double sum) { out[1ll * i * length + j] = sum * scale; });
}

extern "C" __global__ void __launch_bounds__(256)
    attention_weights(double* __restrict__ scores, double* __restrict__ totals) {
  using namespace problem;
  const int row = blockIdx.x;
  const int visible = causal ? row + 1 : length;
  double* score = scores + score_offset(blockIdx.y) + 1ll * row * length;

  double largest = score[0];
  for (int i = threadIdx.x; i < visible; i += blockDim.x) largest = fmax(largest, score[i]);
  largest = block::maximum(largest);

  double total = 0.0;
  for (int i = threadIdx.x; i < visible; i += blockDim.x) {
    const double weight = exp(score[i] - largest);
    score[i] = weight;
    total += weight;
  }
  total = block::sum(total);
  if (threadIdx.x == 0) totals[1ll * blockIdx.y * length + row] = total;
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    attention_values(const double* __restrict__ weights, const double* __restrict__ totals,
                     const half_bits* __restrict__ v, double* __restrict__ truth, int first_head) {
  using namespace problem;
  const double* weight = weights + score_offset(blockIdx.z);
  const double* total = totals + 1ll * blockIdx.z * length;
  const half_bits* v_head = v + head_offset(first_head + blockIdx.z);
  double* out = truth + head_offset(first_head + blockIdx.z);
  const int tile_end = (blockIdx.y + 1) * gemm::rows;
  const int visible = causal && tile_end < length ? tile_end : length;
  gemm::multiply<false>(
      length, head_dim, visible,
      [=](int i, int l) { return causal && l > i ? 0.0 : weight[1ll * i * length + l]; },
      [=](int l, int j) { return to_double(v_head[l * head_dim + j]); },
      [=](int i, int j, double sum) { out[i * head_dim + j] = sum / total[i]; });
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
  const std::int64_t score_bytes = sizes.length * sizes.length * size_in_bytes(DType::f64);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(workspace_bytes / score_bytes, 1, std::min(heads, max_grid_z));

  Program program;
  program.source =
      "#include \"problem.h\"\n" + gemm_source() + block_reduction_source() + oracle_source;
  program.workspaces = {{"scores", chunk * score_bytes},
                        {"totals", chunk * sizes.length * size_in_bytes(DType::f64)}};
  for (std::int64_t first = 0; first < heads; first += chunk) {
    const std::int64_t count = std::min(chunk, heads - first);
    const auto with_first_head = [first](const std::vector<std::string>& names) {
      std::vector<Argument> arguments = buffers(names);
      arguments.push_back(ScalarArgument{static_cast<std::int32_t>(first)});
      return arguments;
    };
    program.steps.push_back(gemm_launch("attention_scores", sizes.length, sizes.length, count,
                                        with_first_head({"q", "k", "scores"})));
    program.steps.push_back(simple_launch("attention_weights", sizes.length, count, threads,
                                          buffers({"scores", "totals"})));
    program.steps.push_back(gemm_launch("attention_values", sizes.length, sizes.head_dim, count,
                                        with_first_head({"scores", "totals", "v", "truth"})));
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

}  // namespace rekernel
