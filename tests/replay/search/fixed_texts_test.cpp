#include "replay/search/fixed_texts.h"

#include <gtest/gtest.h>

#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"
#include "replay/search/reply.h"
#include "tests/problems.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ProblemText, TellsTheDefinitionsWorkAndNoBound) {
  const std::string text = problem_text(*find_problem("matmul_fp16"), {});
  EXPECT_NE(text.find("Inputs and output together are 100663296 bytes; the definition takes "
                      "137438953472 operations.\n"),
            std::string::npos)
      << text;
}

TEST(ProblemText, SaysWhatIsReadWhereValuesDecide) {
  const std::string text = problem_text(*find_problem("attention_decode_gqa_bf16"), {});
  EXPECT_TRUE(mentions(text,
                       "Inputs and output together are 1074790656 bytes, of which 538050816 "
                       "have to be read or written on average"))
      << text;
}

TEST(ProblemText, ShowsTheDefinitionAndTheSizesOfAPlanInAxes) {
  const Problem& problem = *find_problem("attention_fp16_causal");
  const std::string text = problem_text(problem, {});
  for (const std::string& statement : problem.formula) {
    EXPECT_NE(text.find("\n" + statement + "\n"), std::string::npos) << statement;
  }
  EXPECT_NE(text.find("The same in PyTorch: `" + problem.pytorch + "`\n"), std::string::npos);
  EXPECT_NE(
      text.find("other sizes too: batch from 1 to 4, heads from 1 to 4, length from 1 to 300.\n"),
      std::string::npos)
      << text;
}

TEST(ProblemText, ShowsAProgramThatStandsInPlaceOfADefinition) {
  const std::string text = problem_text(program_problem(), {});
  EXPECT_TRUE(mentions(text, "```python\ndef run(x):\n    return x.cumsum(0)\n```\n")) << text;
  EXPECT_FALSE(mentions(text, "operations")) << text;
}

TEST(FormatText, SpeaksOfWhatTheTargetHas) {
  const std::string hopper = format_text("sm_90a");
  EXPECT_TRUE(mentions(hopper, R"("sm_80" or "sm_89" (that and everything newer) or "sm_90a")"));
  EXPECT_TRUE(mentions(hopper, "needed for wgmma, bulk tensor copies, clusters"));
  for (const char* key : {"\"cluster\": ", "\"tensor_map\"", "\"swizzle\": "}) {
    EXPECT_TRUE(mentions(hopper, key)) << key;
  }
  EXPECT_FALSE(mentions(hopper, "sm_100a"));

  const std::string ampere = format_text("sm_86");
  EXPECT_TRUE(mentions(
      ampere, R"("arch" (needed): the lowest target, "sm_80" (that and everything newer).)"));
  EXPECT_TRUE(mentions(ampere, R"(One of "i32", "u32", "i64", "u64", "f32", "f64".)"));
  for (const char* absent : {"cluster", "programmatic_launch", "tensor_map", "sm_89"}) {
    EXPECT_FALSE(mentions(ampere, absent)) << absent;
  }
}

TEST(WorkedExample, IsAValidCandidateOfEveryReply) {
  const auto candidate = testing::candidate_from_text(
      testing::kernel_reply("x"), {"softmax", "fake", "r1.i1.b1", "idea", "sm_90a"});
  ASSERT_TRUE(candidate) << candidate.error().message;
}

TEST(NvrtcWorkedExample, CompilesForEveryTarget) {
  const auto compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  const auto candidate = testing::candidate_from_text(
      testing::kernel_reply("x"), {"softmax", "fake", "r1.i1.b1", "idea", "sm_90a"});
  ASSERT_TRUE(candidate) << candidate.error().message;
  for (const std::string& target : targets_of("sm_80")) {
    if (!compiler->knows(target)) continue;
    const auto compiled =
        compiler->compile(candidate->program, problem_header(*find_problem("softmax")), target);
    ASSERT_TRUE(compiled) << compiled.error().message;
    const auto launches = check_launches(candidate->program, *compiled, "example");
    EXPECT_TRUE(launches) << launches.error().message;
  }
}

}  // namespace
}  // namespace rekernel
