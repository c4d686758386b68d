// `explain` and `show` as a user meets them.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/base/json.h"
#include "harness/gpu/cuda.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

using testing::ProgramOutcome;
using testing::run_program;

ProgramOutcome in_project(const std::string& arguments) {
  return run_program(arguments, REKERNEL_SOURCE_DIR);
}

bool tells(const ProgramOutcome& outcome, const std::string& part) {
  return outcome.output.find(part) != std::string::npos;
}

class ExplainedFolder : public ::testing::Test {
 protected:
  /// Explains a candidate of this source.
  ProgramOutcome explained(const std::string& source, const std::string& options = "") const {
    std::ofstream(folder_ / "kernel.cu") << source;
    std::ofstream(folder_ / "kernel.json") << R"({"schema": 1, "problem": "softmax",
      "name": "mine", "idea": "none", "arch": "sm_90a", "origin": {"note": "a test"},
      "launches": [{"kernel": "k", "grid": [1], "block": [128], "args": ["x", "y"],
                    "dynamic_shared_bytes": 230000}]})";
    return in_project("explain " + options + " " + folder_.path().string());
  }

  TemporaryFolder folder_;
};

using NvrtcExplain = ExplainedFolder;

TEST_F(NvrtcExplain, TellsWhatIsWrongAndWhatToChange) {
  const ProgramOutcome wrong =
      explained("extern \"C\" __global__ void k(const float* x, float* y) { y[0] = z; }\n");
  EXPECT_EQ(wrong.exit_status, 1) << wrong.output;
  EXPECT_TRUE(tells(wrong, "kernel.cu(1): error: identifier \"z\" is undefined")) << wrong.output;
  EXPECT_TRUE(tells(wrong, "what to change (compile_failed)")) << wrong.output;

  const ProgramOutcome large = explained(
      "extern \"C\" __global__ void k(const float* x, float* y) {\n"
      "  __shared__ float tile[1024];\n  tile[threadIdx.x] = x[threadIdx.x];\n"
      "  __syncthreads();\n  y[threadIdx.x] = tile[127 - threadIdx.x];\n}\n");
  EXPECT_EQ(large.exit_status, 1) << large.output;
  EXPECT_TRUE(tells(large, "sm_90a grants a block")) << large.output;
  const ProgramOutcome checked = in_project("check " + folder_.path().string());
  EXPECT_EQ(checked.exit_status, 1) << checked.output;
  EXPECT_TRUE(tells(checked, "sm_90a grants a block 232448 bytes (227 KiB)")) << checked.output;
}

TEST_F(NvrtcExplain, ShowsThePtxBesideTheSource) {
  const ProgramOutcome ptx = explained(
      "extern \"C\" __global__ void k(const float* x, float* y) {\n  y[0] = x[0] + 1.0f;\n}\n",
      "--ptx");
  EXPECT_EQ(ptx.exit_status, 0) << ptx.output;
  EXPECT_TRUE(tells(ptx, ".target sm_90a")) << ptx.output;
  EXPECT_TRUE(tells(ptx, "// kernel.cu:2:   y[0] = x[0] + 1.0f;")) << ptx.output;
  const ProgramOutcome elsewhere =
      in_project("explain --ptx --target sm_80 " + folder_.path().string());
  EXPECT_EQ(elsewhere.exit_status, 2);
  EXPECT_TRUE(tells(elsewhere, "--target sm_80: expected one of sm_90a")) << elsewhere.output;
}

TEST_F(NvrtcExplain, DisassemblesByTheToolkitsProgram) {
  // Where a sandbox sees it: not below /dev.
  const fs::path tools = fs::current_path() / "tools_of_explain_test";
  fs::create_directories(tools);
  std::ofstream(tools / "nvdisasm") << "#!/bin/sh\n[ -s \"$2\" ] && echo \"  EXIT ; $1\"\n";
  fs::permissions(tools / "nvdisasm", fs::perms::owner_all);
  explained("extern \"C\" __global__ void k(const float* x, float* y) { y[0] = x[0]; }\n");
  const ProgramOutcome sass = run_program("explain --sass " + folder_.path().string(),
                                          REKERNEL_SOURCE_DIR, "PATH=" + tools.string() + ":$PATH");
  EXPECT_EQ(sass.exit_status, 0) << sass.output;
  EXPECT_TRUE(tells(sass, "EXIT ; --print-line-info")) << sass.output;
  fs::remove_all(tools);
}

TEST(Explain, OfARecordedCandidateIsJsonOnRequest) {
  const ProgramOutcome outcome = in_project("explain softmax r1.i1.b1 --json");
  EXPECT_EQ(outcome.exit_status, 1) << outcome.output;
  const Result<boost::json::value> json = parse_json(outcome.output, "explain");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->at("verdicts").at(0).at("status"), "invalid_plan");
  EXPECT_TRUE(json->at("refused").as_bool());
  EXPECT_FALSE(json->at("advice").as_array().empty());
}

TEST(Explain, WithoutAGpuThereIsNothingToEvaluateOn) {
  if (Device::open()) GTEST_SKIP() << "this machine has a GPU";
  const ProgramOutcome outcome = in_project("explain --evaluate softmax/cluster_with_prefetch");
  EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
  EXPECT_TRUE(tells(outcome, "no NVIDIA driver")) << outcome.output;
}

TEST(GpuExplain, EvaluatesOnRequest) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  const ProgramOutcome outcome = in_project("explain --evaluate softmax/cluster_with_prefetch");
  EXPECT_TRUE(tells(outcome, ", evaluated now\n")) << outcome.output;
  EXPECT_TRUE(tells(outcome, "roofline")) << outcome.output;
}

TEST(Explain, BadInputIsOneLineAndStatusTwo) {
  for (const auto& [arguments, part] :
       {std::pair{"explain", "expected WHAT; see rekernel help explain"},
        std::pair{"explain a b c", "expected a candidate folder"},
        std::pair{"explain softmax/nothing", "unknown kernel 'softmax/nothing'"},
        std::pair{"explain softmax r99.i1.b1", "no reply for candidate \"r99.i1.b1\""},
        std::pair{"explain no_such_search r1.i1.b1", "no_such_search"},
        std::pair{"show", "expected WHAT; see rekernel help show"},
        std::pair{"show softmx", "softmax"},
        std::pair{"show softmax/nothing", "unknown kernel 'softmax/nothing'"},
        std::pair{"show /nonexistent.json", "/nonexistent.json"}}) {
    const ProgramOutcome outcome = in_project(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << "\n" << outcome.output;
    EXPECT_TRUE(tells(outcome, part)) << outcome.output;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

TEST(Show, AnswersForProblemsFilesAndKernels) {
  const ProgramOutcome problem = in_project("show softmax");
  EXPECT_EQ(problem.exit_status, 0) << problem.output;
  EXPECT_TRUE(tells(problem, "NVIDIA H200")) << problem.output;
  const ProgramOutcome file = in_project("show ops/problems/kernelbench1/rmsnorm.json");
  EXPECT_EQ(file.exit_status, 0) << file.output;
  EXPECT_TRUE(file.output.starts_with("rmsnorm: ")) << file.output;
  const ProgramOutcome kernel = in_project("show softmax/cluster_with_prefetch --json");
  ASSERT_EQ(kernel.exit_status, 0) << kernel.output;
  const Result<boost::json::value> json = parse_json(kernel.output, "show");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->at("plan").at("name"), "cluster_with_prefetch");
  EXPECT_FALSE(json->at("verdicts").as_array().empty());
}

}  // namespace
}  // namespace rekernel
