// What an evaluation does up to the point where it needs a GPU.

#include "harness/evaluation/launcher.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/gpu/cuda.h"

namespace rekernel {
namespace {

Candidate honest() {
  Result<Candidate> candidate =
      load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/adversarial/honest");
  if (!candidate) throw std::runtime_error(candidate.error().message);
  return *std::move(candidate);
}

class NoSession : public ExternalSession {
 public:
  Result<std::array<int, 2>> descriptors() override { return Error{"python3 ended"}; }
};

TEST(LocalLauncher, WithoutAGpuThereIsNoVerdict) {
  if (load_driver()) GTEST_SKIP() << "this machine has a driver";
  for (const auto mode : {EvaluateOptions::Mode::verdict, EvaluateOptions::Mode::once}) {
    EvaluateOptions options;
    options.mode = mode;
    const EvaluationReport report = LocalLauncher().evaluate(honest(), options);
    EXPECT_EQ(report.failure.rfind("no NVIDIA driver: ", 0), 0u) << report.failure;
    EXPECT_EQ(report.evaluation.kernel, "honest");
  }
}

TEST(LocalLauncher, ExternalReferencesNeedASession) {
  EvaluateOptions options;
  options.external_references = {"pytorch_eager"};
  EXPECT_EQ(LocalLauncher().evaluate(honest(), options).failure, "no external references here");
  NoSession session;
  EXPECT_EQ(LocalLauncher(&session).evaluate(honest(), options).failure, "python3 ended");
}

}  // namespace
}  // namespace rekernel
