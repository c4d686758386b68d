#include "harness/project/compile_all.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

CompileCheck check(const std::string& target) {
  return {.candidate = "softmax/mine", .target = target};
}

TEST(CompileText, SaysWhatWasSkippedAndDoesNotCountItAsAFailure) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_103a")};
  checks[0].resources = {{"softmax", 32, 128, 80, 4, 8, {}}};
  checks[1].skipped = "NVRTC 12.6 does not know sm_103a";
  EXPECT_TRUE(all_compile(checks));
  EXPECT_EQ(compile_text(checks, {}),
            "candidate     target   kernel   registers  static shared  stack  spills  verdict\n"
            "softmax/mine  sm_80    softmax         32            128     80      12  compiles\n"
            "softmax/mine  sm_103a                                                    skipped\n"
            "skipped: NVRTC 12.6 does not know sm_103a\n");
  EXPECT_EQ(compile_text(checks, {.csv = true}),
            "candidate,target,kernel,registers,static_shared_bytes,stack_bytes,spill_bytes,"
            "verdict,error\n"
            "softmax/mine,sm_80,softmax,32,128,80,12,compiles,\n"
            "softmax/mine,sm_103a,,,,,,skipped,\n");
  EXPECT_EQ(compile_json(checks).at(1).at("skipped"), "NVRTC 12.6 does not know sm_103a");
}

TEST(CompileText, NamesEveryFailureOnceMore) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_89")};
  checks[1].error = "does not compile";
  EXPECT_FALSE(all_compile(checks));
  const std::string text = compile_text(checks, {});
  EXPECT_NE(text.find("\nsoftmax/mine for sm_89: does not compile\n"), std::string::npos) << text;
  EXPECT_EQ(skipped_text(checks), "");
}

TEST(CompileText, TellsOneErrorOnceForAllTargets) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_89"), check("sm_90a")};
  for (CompileCheck& one : checks) {
    one.error = "does not compile for " + one.target +
                " (NVRTC_ERROR_COMPILATION):\nkernel.cu(1): error: \"a\nsoftmax/mine: passed\"\n";
  }
  checks[2].error = "not compiled within 45 s";
  const std::vector<CompilerWords> failures = compile_failures(checks);
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].where(), "softmax/mine for sm_80, sm_89");
  const std::string text = compile_text(checks, {});
  EXPECT_NE(text.find("\nsoftmax/mine for sm_80, sm_89: does not compile "
                      "(NVRTC_ERROR_COMPILATION): kernel.cu(1): error: \"a\n"
                      "  | does not compile (NVRTC_ERROR_COMPILATION):\n"
                      "  | kernel.cu(1): error: \"a\n"
                      "  | softmax/mine: passed\"\n"
                      "softmax/mine for sm_90a: not compiled within 45 s\n"),
            std::string::npos)
      << text;
  EXPECT_NE(compile_text(checks, {.csv = true}).find(",failed,not compiled within 45 s\n"),
            std::string::npos);
}

TEST(CompileText, ShowsWarningsOnceForAllTargets) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_89")};
  checks[0].warnings = checks[1].warnings = "kernel.cu(3): warning: odd";
  EXPECT_TRUE(all_compile(checks));
  const std::string text = compile_text(checks, {});
  EXPECT_NE(text.find("softmax/mine for sm_80, sm_89: warnings:\n  | kernel.cu(3): warning: odd\n"),
            std::string::npos)
      << text;
}

TEST(OtherSizesText, NamesSizesWhereAllIsWell) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_80")};
  checks[0].sizes = "columns 1, rows 1";
  checks[1].sizes = "columns 7, rows 2";
  EXPECT_EQ(other_sizes_text(checks),
            "softmax/mine: its plan is in axes, and also good for sm_80 at columns 1, rows 1; "
            "columns 7, rows 2\n");
  EXPECT_EQ(failures_text(checks), "");
  checks[1].error = "launches[0].grid[0]: expected an integer from 1";
  EXPECT_EQ(other_sizes_text(checks), "");
  EXPECT_EQ(failures_text(checks),
            "softmax/mine at columns 7, rows 2 for sm_80: launches[0].grid[0]: expected an integer "
            "from 1\n");
  EXPECT_EQ(compile_json(checks).at(1).at("sizes"), "columns 7, rows 2");
  EXPECT_EQ(other_sizes_text({}), "");
}

Candidate in_axes(const std::string& grid) {
  const std::string plan =
      R"({"schema": 1, "problem": "softmax", "name": "mine", "idea": "i", "arch": "sm_80",
          "origin": {"note": "n"}, "launches": [{"kernel": "k", "block": [32], "args": ["y"],
          "grid": [)" +
      grid + "]}]}";
  const std::string source =
      "#include \"problem.h\"\n"
      "static_assert(problem::rows > 0);\n"
      "extern \"C\" __global__ void k(float* y) { y[0] = problem::columns; }\n";
  Result<Candidate> candidate = parse_candidate(plan, source, "kernel.json");
  EXPECT_TRUE(candidate) << (candidate ? "" : candidate.error().message);
  return *std::move(candidate);
}

TEST(NvrtcOtherSizes, ArePartOfACheckOfPlansInAxes) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  EXPECT_TRUE(check_other_sizes(*compiler, {in_axes("4096")}).empty());  // a plan of numbers
  const std::vector<CompileCheck> good = check_other_sizes(*compiler, {in_axes("\"rows\"")});
  EXPECT_GE(good.size(), 3u);
  EXPECT_TRUE(all_compile(good)) << failures_text(good);
  // Good at the problem's own sizes, and nothing at the least ones.
  const std::vector<CompileCheck> bad = check_other_sizes(*compiler, {in_axes("\"rows / 4096\"")});
  EXPECT_FALSE(all_compile(bad));
  EXPECT_EQ(bad.front().status, Status::invalid_plan);
  EXPECT_EQ(bad.front().error,
            "softmax/mine/kernel.json at columns 1, rows 1: launches[0].grid[0]: expected an "
            "integer from 1 to 2147483647, got \"rows / 4096\" = 0");
}

}  // namespace
}  // namespace rekernel
