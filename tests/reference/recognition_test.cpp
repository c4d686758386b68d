#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "harness/problems/catalog.h"
#include "harness/problems/small_instance.h"
#include "ops/definition/interpreter.h"
#include "ops/definition/mutants.h"
#include "ops/inputs.h"
#include "reference/reference.h"
#include "reference/shapes.h"
#include "tests/ops/definition/scope.h"
#include "tests/reference/plain_library.h"

namespace rekernel {
namespace {

using Ids = std::vector<std::string>;

Ids ids_of(const Problem& problem) {
  Ids ids;
  for (const ReferenceInfo& info : references_of(problem)) ids.push_back(info.id);
  return ids;
}

const Ids products = {"cublas_fp32", "cublas_tf32"};
const Ids convolutions = {"cudnn_fp32", "cudnn_tf32"};

/// Every problem that a library solves, and by which references, the headline first. Problems that
/// are not here must have none.
const std::map<std::string, Ids>& expected_references() {
  static const std::map<std::string, Ids> table = [] {
    std::map<std::string, Ids> all = {
        {"attention_decode_gqa_bf16", {"cudnn_attention"}},
        {"attention_fp16", {"cudnn_attention"}},
        {"attention_fp16_causal", {"cudnn_attention"}},
        {"attention_sliding_window_bf16", {"cudnn_attention"}},
        {"avg_pool1d", {"cudnn_pooling"}},
        {"avg_pool2d", {"cudnn_pooling"}},
        {"avg_pool3d", {"cudnn_pooling"}},
        {"batchnorm", {"cudnn_batchnorm"}},
        // A product of each image with the weight, and a convolution with windows of one place.
        {"conv_pointwise2d", {"cublas_fp32", "cublas_tf32", "cudnn_fp32", "cudnn_tf32"}},
        {"elu", {"cudnn_activation"}},
        {"instancenorm", {"cudnn_batchnorm"}},
        {"layernorm", {"cudnn_layernorm"}},
        {"layernorm_chw", {"cudnn_layernorm"}},
        {"log_softmax", {"cudnn_softmax"}},
        {"matmul_bf16", {"cublas_bf16"}},
        {"matmul_fp16", {"cublas_fp16"}},
        {"matmul_fp8_rows", {"cublas_fp8"}},
        {"matvec", {"cublas_fp32"}},  // TF32 is for matrices
        {"max_middle", {"cudnn_reduction"}},
        {"max_pool2d", {"cudnn_pooling"}},
        {"mean_middle", {"cudnn_reduction"}},
        {"min_middle", {"cudnn_reduction"}},
        {"relu", {"cudnn_activation"}},
        {"sigmoid", {"cudnn_activation"}},
        {"softmax", {"cudnn_softmax"}},
        {"softmax_backward", {"cudnn_softmax"}},
        {"softmax_wide", {"cudnn_softmax"}},
        {"sum_middle", {"cudnn_reduction"}},
        {"swish", {"cudnn_activation"}},
        {"tanh_elementwise", {"cudnn_activation"}},
    };
    for (const char* id :
         {"matmul_3d", "matmul_4d", "matmul_batched", "matmul_fp32", "matmul_irregular",
          "matmul_large_inner", "matmul_rectangular", "matmul_small_inner", "matmul_square",
          "matmul_symmetric", "matmul_tall_skinny", "matmul_transposed_a", "matmul_transposed_b",
          "matmul_transposed_both"}) {
      all[id] = products;
    }
    for (const char* id : {"conv1d",
                           "conv1d_dilated",
                           "conv2d",
                           "conv2d_11x11",
                           "conv2d_3x3",
                           "conv2d_5x7",
                           "conv2d_5x9",
                           "conv2d_dilated",
                           "conv2d_relu_maxpool",
                           "conv2d_wide",
                           "conv3d",
                           "conv3d_3x3x1",
                           "conv3d_3x5x7",
                           "conv3d_3x5x7_flat",
                           "conv_depthwise2d",
                           "conv_depthwise2d_3x1",
                           "conv_depthwise2d_3x7",
                           "conv_depthwise2d_wide",
                           "conv_transpose1d",
                           "conv_transpose1d_dilated",
                           "conv_transpose1d_strided",
                           "conv_transpose2d",
                           "conv_transpose2d_3x5",
                           "conv_transpose2d_3x7",
                           "conv_transpose2d_grouped",
                           "conv_transpose2d_padded",
                           "conv_transpose2d_strided",
                           "conv_transpose2d_wide",
                           "conv_transpose3d",
                           "conv_transpose3d_3x5x5",
                           "conv_transpose3d_3x5x7",
                           "conv_transpose3d_dilated",
                           "conv_transpose3d_grouped",
                           "conv_transpose3d_grouped_3x5x7",
                           "conv_transpose3d_oblong"}) {
      all[id] = convolutions;
    }
    return all;
  }();
  return table;
}

/// Why some problems that look as if a library had them have no reference.
const std::map<std::string, std::string>& reasons_for_none() {
  static const std::map<std::string, std::string> table = {
      {"matmul_upper_triangular", "a product would do the zeros too"},
      {"matmul_lower_triangular", "a product would do the zeros too"},
      {"matmul_diagonal", "no sum at all"},
      {"matmul_fp8_blocks", "cuBLAS wants its scales of A by column"},
      {"moe_grouped_product_bf16", "which matrix it is depends on values"},
      {"masked_cumsum", "a scan"},
      {"max_pool1d", "cuDNN's pooling has no dilation"},
      {"max_pool3d", "cuDNN's pooling has no dilation"},
      {"conv_separable2d", "two convolutions, one after the other"},
      {"attention_fp32", "cuDNN's attention takes types of 16 bits"},
      {"groupnorm", "weights by channel, statistics by group"},
      {"rmsnorm", "over the channels, which lie apart"},
      {"rmsnorm_residual_bf16", "two outputs"},
      {"argmax_middle", "cuDNN's indices have 32 bits"},
      {"leaky_relu", "cuDNN's ReLU has no slope"},
      {"cross_entropy", "a read where values say"},
  };
  return table;
}

TEST(Recognition, EveryProblemHasTheReferencesThatItsDefinitionAllows) {
  std::size_t found = 0;
  for (const Problem& problem : catalog()) {
    const auto expected = expected_references().find(problem.id);
    const Ids ids = ids_of(problem);
    if (expected == expected_references().end()) {
      EXPECT_EQ(ids, Ids{}) << problem.id;
      continue;
    }
    ++found;
    EXPECT_EQ(ids, expected->second) << problem.id;
  }
  EXPECT_EQ(found, expected_references().size()) << "a problem in the table is gone";
  for (const auto& [id, reason] : reasons_for_none()) {
    ASSERT_NE(find_problem(id), nullptr) << id;
    EXPECT_EQ(ids_of(*find_problem(id)), Ids{}) << id << ": " << reason;
  }
}

TEST(Recognition, ThePublishedProblemsKeepTheirTitles) {
  const std::map<std::string, std::string> titles = {
      {"matmul_fp32", "cuBLAS, FP32 math; cuBLAS, TF32 math; "},
      {"matmul_fp16", "cuBLAS, FP16 with FP32 accumulation; "},
      {"conv2d", "cuDNN convolution, FP32 math; cuDNN convolution, TF32 math; "},
      {"conv2d_relu_maxpool",
       "cuDNN convolution with bias and ReLU, then max-pool, FP32 math; "
       "cuDNN convolution with bias and ReLU, then max-pool, TF32 math; "},
      {"softmax", "cuDNN softmax; "},
      {"layernorm", "cuDNN layer norm; "},
      {"attention_fp16", "cuDNN attention, FP16 with FP32 accumulation; "},
      {"attention_fp16_causal", "cuDNN causal attention, FP16 with FP32 accumulation; "}};
  for (const Problem& problem : published_problems()) {
    std::string text;
    for (const ReferenceInfo& info : references_of(problem)) text += info.title + "; ";
    ASSERT_TRUE(titles.contains(problem.id)) << problem.id;
    EXPECT_EQ(text, titles.at(problem.id));
  }
}

/// Where a shape's output differs from what the definition says; empty: nowhere.
std::string difference(const Problem& problem, const LibraryShape& shape,
                       const HostInputs& inputs) {
  const definition::Values all =
      definition::interpret(*problem.definition, definition::Values(inputs.begin(), inputs.end()));
  const std::vector<double>& expected = all.find(problem.outputs().front()->name)->second;
  const std::vector<double> actual = plain_library(shape, inputs);
  if (actual.size() != expected.size()) return "another number of elements";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!(std::fabs(actual[i] - expected[i]) <= 1e-9 * (1 + std::fabs(expected[i])))) {
      return "element " + std::to_string(i) + " is " + std::to_string(actual[i]) + ", not " +
             std::to_string(expected[i]);
    }
  }
  return "";
}

TEST(Recognition, ShapesComputeWhatDefinitionsSay) {
  for (const auto& [id, references] : expected_references()) {
    const Result<Problem> small = small_instance(*find_problem(id));
    ASSERT_TRUE(small) << small.error().message;
    const std::vector<LibraryShape> shapes = shapes_of(*small);
    EXPECT_EQ(shapes.size(), shapes_of(*find_problem(id)).size()) << id;
    const HostInputs inputs = host_inputs(*small, 7);
    for (const LibraryShape& shape : shapes) EXPECT_EQ(difference(*small, shape, inputs), "") << id;
  }
}

/// A share of the catalog, so that several processes can have one each.
class RecognitionOfMistakes : public ::testing::TestWithParam<std::size_t> {
 public:
  static constexpr std::size_t shares = 6;
};

TEST_P(RecognitionOfMistakes, NonePassesForTheRightDefinition) {
  int mutants = 0, seen = 0;
  for (std::size_t i = GetParam(); i < catalog().size(); i += shares) {
    const Problem& problem = catalog()[i];
    const Result<Problem> small = small_instance(problem);
    ASSERT_TRUE(small) << small.error().message;
    const HostInputs inputs = host_inputs(*small, 7);
    for (definition::DefinitionMutant& mutant :
         definition::definition_mutants(*small->definition)) {
      Problem wrong = *small;
      wrong.definition =
          std::make_shared<const definition::Definition>(std::move(mutant.definition));
      ++mutants;
      // Some are another thing that a library has: another scale, say.
      for (const LibraryShape& shape : shapes_of(wrong)) {
        ++seen;
        EXPECT_EQ(difference(wrong, shape, inputs), "") << problem.id << ", " << mutant.what;
      }
    }
  }
  EXPECT_GT(mutants, 1000 / static_cast<int>(shares));
  EXPECT_LT(seen, mutants / 4);
}

INSTANTIATE_TEST_SUITE_P(Shares, RecognitionOfMistakes,
                         ::testing::Range<std::size_t>(0, RecognitionOfMistakes::shares));

/// A problem with these tensors, the last of which is the output, and statements.
Problem problem_of(const std::vector<Tensor>& tensors, const std::vector<std::string>& statements) {
  Problem problem;
  problem.id = "made_up";
  problem.tensors = tensors;
  std::vector<definition::TensorInfo> infos;
  for (const Tensor& tensor : tensors) {
    infos.push_back(tensor.role == Role::output
                        ? definition::output(tensor.name, tensor.dtype, tensor.shape)
                        : definition::tensor(tensor.name, tensor.dtype, tensor.shape));
  }
  problem.definition = std::make_shared<const definition::Definition>(
      definition::definition_of(std::move(infos), statements));
  return problem;
}

Tensor input(const std::string& name, std::vector<std::int64_t> shape, DType dtype = DType::f32) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape)};
}
Tensor output(std::vector<std::int64_t> shape, DType dtype = DType::f32) {
  return {.name = "y", .dtype = dtype, .shape = std::move(shape), .role = Role::output};
}

TEST(Recognition, AProblemMayBeWrittenInAnotherWay) {
  // Factors and indices in another order, a scale of its own, what is defined in between.
  const std::vector<Tensor> factors = {input("a", {8, 16}), input("b", {8, 4}), output({4, 16})};
  for (const std::vector<std::string>& statements :
       {std::vector<std::string>{"s[j, i] = sum(k) b[k, j] * a[k, i]", "y[u, v] = s[u, v] / 4"},
        {"y[u, v] = 0.25 * sum(k) b[k, u] * a[k, v]"},
        {"y[u, v] = (sum(p) a[p, v] * b[p, u]) / 4"}}) {
    const Problem product = problem_of(factors, statements);
    EXPECT_EQ(ids_of(product), products) << statements[0];
    for (const LibraryShape& shape : shapes_of(product)) {
      EXPECT_EQ(difference(product, shape, host_inputs(product, 5)), "");
    }
  }
  EXPECT_EQ(ids_of(problem_of({input("x", {6, 9}), output({6, 9})},
                              {"e[i, j] = exp(x[i, j] - (max(k) x[i, k]))",
                               "y[i, j] = e[i, j] / (sum(k) e[i, k])"})),
            Ids{"cudnn_softmax"});
}

TEST(Recognition, AttentionSharesKeysAmongHeads) {
  const std::vector<Tensor> tensors = {
      input("q", {2, 6, 5, 8}, DType::bf16), input("k", {2, 3, 5, 8}, DType::bf16),
      input("v", {2, 3, 5, 8}, DType::bf16), output({2, 6, 5, 8}, DType::bf16)};
  const auto statements = [](const std::string& key_head) {
    return std::vector<std::string>{
        "s[b, h, i, j] = 0.5 * (sum(d) q[b, h, i, d] * k[b, " + key_head + ", j, d])",
        "m[b, h, i] = max(j : j <= i) s[b, h, i, j]",
        "w[b, h, i, j] = where(j <= i, exp(s[b, h, i, j] - m[b, h, i]), 0)",
        "y[b, h, i, d] = (sum(j : i >= j) w[b, h, i, j] * v[b, " + key_head +
            ", j, d]) / (sum(j : j <= i) w[b, h, i, j])"};
  };
  const Problem shared = problem_of(tensors, statements("h // 2"));
  const std::vector<LibraryShape> shapes = shapes_of(shared);
  ASSERT_EQ(shapes.size(), 1u);
  const Attention& attention = std::get<Attention>(shapes[0]);
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(attention.key_heads, 3);
  EXPECT_EQ(difference(shared, shapes[0], host_inputs(shared, 5)), "");
  EXPECT_EQ(ids_of(problem_of(tensors, statements("h % 3"))), Ids{});
}

TEST(Recognition, AttentionMayLookBackByAWindow) {
  const std::vector<Tensor> tensors = {
      input("q", {2, 2, 9, 8}, DType::f16), input("k", {2, 2, 9, 8}, DType::f16),
      input("v", {2, 2, 9, 8}, DType::f16), output({2, 2, 9, 8}, DType::f16)};
  const auto statements = [](const std::string& seen) {
    return std::vector<std::string>{"s[b, h, i, j] = sum(d) q[b, h, i, d] * k[b, h, j, d]",
                                    "m[b, h, i] = max(j : " + seen + ") s[b, h, i, j]",
                                    "w[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])",
                                    "y[b, h, i, d] = (sum(j : " + seen +
                                        ") w[b, h, i, j] * v[b, h, j, d]) / (sum(j : " + seen +
                                        ") w[b, h, i, j])"};
  };
  // A window has a size that the definition names.
  Problem problem = problem_of(tensors, statements("j <= i and j > i - 8"));
  const std::vector<LibraryShape> shapes = shapes_of(problem);
  ASSERT_EQ(shapes.size(), 1u);
  const Attention& attention = std::get<Attention>(shapes[0]);
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(attention.window, 8);
  EXPECT_EQ(difference(problem, shapes[0], host_inputs(problem, 5)), "");
  EXPECT_EQ(ids_of(problem_of(tensors, statements("j <= i and j >= i - 8"))), Ids{});
}

TEST(Recognition, AttentionMayHaveLengths) {
  const std::vector<Tensor> tensors = {input("q", {3, 4, 8}, DType::bf16),
                                       input("k", {3, 2, 7, 8}, DType::bf16),
                                       input("v", {3, 2, 7, 8}, DType::bf16),
                                       input("n", {3}, DType::i32), output({3, 4, 8}, DType::bf16)};
  const auto statements = [](const std::string& seen) {
    return std::vector<std::string>{
        "s[b, h, j] = 0.5 * sum(d) q[b, h, d] * k[b, h // 2, j, d]",
        "m[b, h] = max(j : " + seen + ") s[b, h, j]",
        "w[b, h, j] = where(" + seen + ", exp(s[b, h, j] - m[b, h]), 0)",
        "y[b, h, d] = (sum(j) w[b, h, j] * v[b, h // 2, j, d]) / (sum(j) w[b, h, j])"};
  };
  const std::vector<LibraryShape> shapes = shapes_of(problem_of(tensors, statements("j < n[b]")));
  ASSERT_EQ(shapes.size(), 1u);
  const Attention& attention = std::get<Attention>(shapes[0]);
  EXPECT_EQ(attention.lengths, "n");
  EXPECT_EQ(attention.queries, 1);
  EXPECT_FALSE(attention.causal);
  EXPECT_EQ(ids_of(problem_of(tensors, statements("j <= n[b]"))), Ids{});
}

TEST(Recognition, DefinitionsThatGrowAreGivenUp) {
  std::vector<std::string> statements = {"s0[i] = x[i]"};
  for (int k = 1; k <= 60; ++k) {
    const std::string before = "s" + std::to_string(k - 1) + "[i]";
    statements.push_back("s" + std::to_string(k) + "[i] = exp(" + before + ") + sin(" + before +
                         ")");
  }
  statements.push_back("y[i] = s60[i]");
  EXPECT_EQ(ids_of(problem_of({input("x", {16}), output({16})}, statements)), Ids{});
}

}  // namespace
}  // namespace rekernel
