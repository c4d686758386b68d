// What an evaluation does up to the point where it needs a GPU.

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/evaluation/evaluate.h"
#include "harness/gpu/cuda.h"

namespace rekernel {
namespace {

Candidate honest() {
  Result<Candidate> candidate =
      load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/adversarial/honest");
  if (!candidate) throw std::runtime_error(candidate.error().message);
  return *std::move(candidate);
}

TEST(EvaluateIsolated, WithoutAGpuThereIsNoVerdict) {
  if (load_driver()) GTEST_SKIP() << "this machine has a driver";
  const EvaluationReport report = evaluate_isolated(honest(), {});
  EXPECT_EQ(report.failure.rfind("no NVIDIA driver: ", 0), 0u) << report.failure;
}

TEST(EvaluateIsolated, ExternalReferencesNeedSomebodyToStartThem) {
  EvaluateOptions options;
  options.external_references = {"pytorch_eager"};
  EXPECT_EQ(evaluate_isolated(honest(), options).failure, "no external references here");
  const auto missing = []() -> Result<std::unique_ptr<ExternalProcess>> {
    return Error{"no python3"};
  };
  EXPECT_EQ(evaluate_isolated(honest(), options, missing).failure, "no python3");
}

}  // namespace
}  // namespace rekernel
