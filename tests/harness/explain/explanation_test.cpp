#include "harness/explain/explanation.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

constexpr const char* plan = R"({"schema": 1, "problem": "softmax", "name": "mine", "idea": "none",
  "arch": "sm_80", "origin": {"note": "a test"},
  "launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["x", "y"]}]})";

ExplainedCandidate subject_with(const std::string& source) {
  ExplainedCandidate subject;
  subject.name = "softmax/mine";
  subject.place = "mine";
  subject.candidate = *parse_candidate(plan, source, "kernel.json");
  return subject;
}

std::vector<std::string_view> signs_of(const Explanation& explanation) {
  std::vector<std::string_view> signs;
  for (const Advice* advice : advice_in(explanation)) signs.push_back(advice->sign);
  return signs;
}

TEST(NvrtcExplanation, TellsOneErrorOnceForAllTargetsAndWhatToChange) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler.ok()) << compiler.error().message;
  const Explanation explanation =
      explain(subject_with("extern \"C\" __global__ void k(const float* x, float* y) {\n"
                           "  y[0] = unknown_name;\n}\n"),
              compiler);
  EXPECT_TRUE(explanation.refused());
  const std::string text = explanation_text(explanation, {});
  EXPECT_NE(text.find("compile_failed for sm_80, sm_89"), std::string::npos) << text;
  const std::size_t error = text.find(
      "  | kernel.cu(2): error: identifier \"unknown_name\" is "
      "undefined\n");
  ASSERT_NE(error, std::string::npos) << text;
  EXPECT_EQ(text.find("  | kernel.cu(2): error", error + 1), std::string::npos) << text;
  EXPECT_NE(text.find("  |     y[0] = unknown_name;\n"), std::string::npos) << text;
  EXPECT_EQ(signs_of(explanation), std::vector<std::string_view>{"is undefined"});
  EXPECT_NE(text.find("what to change (compile_failed)\n"), std::string::npos) << text;
}

TEST(NvrtcExplanation, TellsWarningsLocalArraysAndLaunchesThatDoNotFitTheKernel) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler.ok()) << compiler.error().message;
  const Explanation good =
      explain(subject_with("extern \"C\" __global__ void k(const float* x, float* y) {\n"
                           "  int unused = 3;\n  float local[4096];\n"
                           "  for (int i = 0; i < 4096; ++i) local[i] = x[i];\n"
                           "  y[0] = local[int(x[7]) & 4095];\n}\n"),
              compiler);
  EXPECT_FALSE(good.refused());
  const std::string text = explanation_text(good, {});
  EXPECT_NE(text.find("warnings for sm_80, sm_89"), std::string::npos) << text;
  EXPECT_NE(text.find("a stack of 16384 bytes a thread lies in"), std::string::npos) << text;
  EXPECT_TRUE(advice_in(good).empty());

  const Explanation unfit =
      explain(subject_with("extern \"C\" __global__ void k(const float* x) {}\n"), compiler);
  EXPECT_TRUE(unfit.refused());
  EXPECT_EQ(signs_of(unfit), std::vector<std::string_view>{"arguments, got"});
}

TEST(Explanation, OfARecordedFailureNamesCheckAndAdvice) {
  Explanation explanation;
  explanation.subject.name = "mine r1.i1.b1";
  explanation.not_compiled = "no compiler";
  Verdict verdict;
  verdict.device = "NVIDIA \x1b[31mH200";
  verdict.status = Status::wrong_result;
  verdict.check = "rms error";
  verdict.message = "rms error 0.5 at rms(truth) 1: expected a ratio of at most 0.0001";
  explanation.subject.verdicts = {verdict};
  EXPECT_TRUE(explanation.refused());
  const std::string text = explanation_text(explanation, {});
  EXPECT_NE(text.find("verdict: wrong_result, NVIDIA ?[31mH200"), std::string::npos) << text;
  EXPECT_NE(text.find("  check       rms error\n"), std::string::npos) << text;
  EXPECT_EQ(signs_of(explanation), std::vector<std::string_view>{"rms error"});
  const boost::json::object json = to_json(explanation);
  EXPECT_TRUE(json.at("refused").as_bool());
  EXPECT_EQ(json.at("verdicts").at(0).at("check"), "rms error");
  EXPECT_EQ(json.at("advice").as_array().size(), 1u);
}

TEST(Roofline, BoundsByTheSlowerOfMemoryAndMatrixUnits) {
  Problem problem;
  problem.min_bytes = 1000;
  problem.operations = 4000;
  problem.matrix_products = 2;
  const Ceilings ceilings{.copy_bytes_per_s = 1'000'000'000, .fp16_flops_per_s = 16'000'000'000};
  const std::optional<Roofline> roof = roofline(problem, ceilings);
  ASSERT_TRUE(roof);
  EXPECT_EQ(roof->intensity, 4.0);
  EXPECT_EQ(roof->ridge, 8.0);
  EXPECT_EQ(roof->memory_ns, 1000);
  EXPECT_EQ(roof->matrix_ns, 500);
  EXPECT_TRUE(roof->bound_by_memory());
  EXPECT_FALSE(roofline(problem, {}));
}

}  // namespace
}  // namespace rekernel
