#include "reference/reference.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/base/harness_digest.h"
#include "harness/problems/catalog.h"
#include "reference/pytorch.h"

namespace rekernel {
namespace {

std::vector<std::string> ids_of(std::string_view problem) {
  std::vector<std::string> ids;
  for (const ReferenceInfo& info : references_of(problem)) ids.push_back(info.id);
  return ids;
}

TEST(References, PublishedProblemsHaveALibrarysHeadlineThatComesFirst) {
  for (const Problem& problem : catalog()) {
    const std::vector<ReferenceInfo> references = references_of(problem.id);
    EXPECT_TRUE(!references.empty() || problem.group != "published") << problem.id;
    for (std::size_t i = 0; i < references.size(); ++i) {
      EXPECT_EQ(references[i].headline, i == 0) << problem.id;
      EXPECT_EQ(references[i].problem, problem.id);
      EXPECT_FALSE(references[i].title.empty());
    }
  }
}

TEST(References, AProblemMayHaveNoHeadline) {
  EXPECT_EQ(headline_id("matmul_fp32"), "cublas_fp32");
  EXPECT_EQ(headline_id("no_such_problem"), std::nullopt);
}

TEST(References, PytorchsHeadlineHasTf32OffWhereProductsTakeFp32) {
  using Ids = std::vector<std::string>;
  const auto ids = [](const char* id) { return pytorch_reference_ids(*find_problem(id)); };
  const Ids plain = {"pytorch_eager", "pytorch_compile"};
  const Ids products = {"pytorch_eager_fp32", "pytorch_eager", "pytorch_compile"};
  EXPECT_EQ(ids("conv3d"), products);
  EXPECT_EQ(ids("matmul_square"), products);
  EXPECT_EQ(ids("matmul_fp16"), plain);
  EXPECT_EQ(ids("matmul_bf16"), plain);
  EXPECT_EQ(ids("rmsnorm"), plain);
  EXPECT_EQ(ids("cumsum"), plain);
}

TEST(References, EveryOneHasSourcesOfItsOwn) {
  for (const Problem& problem : catalog()) {
    std::vector<std::string> ids = ids_of(problem.id);
    for (const std::string& id : pytorch_reference_ids(problem)) ids.push_back(id);
    for (const std::string& id : ids) {
      EXPECT_TRUE(harness_digests().references.contains(id))
          << id << ": expected in harness/base/judging_sources.cpp";
    }
  }
}

TEST(References, NoProblemNamesAnIdTwice) {
  for (const Problem& problem : catalog()) {
    std::vector<std::string> ids = ids_of(problem.id);
    for (const std::string& id : pytorch_reference_ids(problem)) ids.push_back(id);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size()) << problem.id;
  }
}

TEST(References, HeadlinesAreFp32MathOrTheProblemsOwnFp16) {
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids_of("matmul_fp32"), (Ids{"cublas_fp32", "cublas_tf32"}));
  EXPECT_EQ(ids_of("conv2d"), (Ids{"cudnn_fp32", "cudnn_tf32"}));
  EXPECT_EQ(ids_of("conv2d_relu_maxpool"), (Ids{"cudnn_fp32", "cudnn_tf32"}));
  EXPECT_EQ(ids_of("softmax"), Ids{"cudnn_softmax"});
  EXPECT_EQ(ids_of("layernorm"), (Ids{"cudnn_layernorm"}));
  EXPECT_EQ(ids_of("matmul_fp16"), Ids{"cublas_fp16"});
  EXPECT_EQ(ids_of("attention_fp16"), Ids{"cudnn_attention"});
  EXPECT_EQ(ids_of("attention_fp16_causal"), Ids{"cudnn_attention"});
  EXPECT_TRUE(ids_of("no_such_problem").empty());
}

TEST(References, UnknownOnesAndMissingBuffersAreErrors) {
  const Problem& problem = *find_problem("softmax");
  ReferenceInfo info{.id = "cudnn_hardmax", .problem = "softmax"};
  auto unknown = make_reference(info, problem, {}, Device());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "no reference cudnn_hardmax for problem softmax");

  info.id = "cudnn_softmax";
  auto unbound = make_reference(info, problem, {{"x", {.pointer = 16, .bytes = 12}}}, Device());
  ASSERT_FALSE(unbound);
  EXPECT_EQ(unbound.error().message, "cudnn_softmax: tensor x needs a buffer of 1073741824 bytes");
}

TEST(References, LibraryVersionsAreDottedNumbers) {
  // Both are there wherever ./test runs: the set-up fetches what the machine lacks.
  const auto versions = reference_library_versions();
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].first, "cuBLAS");
  EXPECT_EQ(versions[1].first, "cuDNN");
  for (const auto& [library, version] : versions) {
    EXPECT_EQ(version.find_first_not_of("0123456789."), std::string::npos) << version;
    EXPECT_NE(version.find('.'), std::string::npos) << version;
  }
}

}  // namespace
}  // namespace rekernel
