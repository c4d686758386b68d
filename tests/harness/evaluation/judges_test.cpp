// The processes that stay for the next evaluation, as far as they come without a GPU.

#include "harness/evaluation/judges.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/gpu/cuda.h"

namespace rekernel {
namespace {

/// A GPU that is not there.
GpuIdentity absent_gpu() {
  return {"NVIDIA None",
          "0123456789abcdef0123456789abcdef",
          {9, 0},
          "GPU-01234567-89ab-cdef-0123-456789abcdef",
          "/dev/nvidia77"};
}

struct OneCase {
  OneCase() {
    Result<Candidate> loaded =
        load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/adversarial/honest");
    if (!loaded) throw std::runtime_error(loaded.error().message);
    candidate = *std::move(loaded);
    options.startup_deadline = std::chrono::seconds(20);
    compiled.set_value(CompileOutcome{std::nullopt, Status::compile_failed, "none"});
    Result<RunnerProcess> started =
        RunnerProcess::start_opening(absent_gpu(), std::chrono::seconds(60));
    if (!started) throw std::runtime_error(started.error().message);
    runner = std::move(*started);
  }
  Judges::Answer judged_by(Judges& judges) {
    options.mode = EvaluateOptions::Mode::diagnosis;
    return judges.evaluate(
        {candidate, options, compiled.get_future().share(), {&runner}, {}, false});
  }
  Candidate candidate;
  EvaluateOptions options;
  std::promise<Result<CompileOutcome>> compiled;
  RunnerProcess runner;
};

TEST(Judges, WithoutAGpuSaySoAndEnd) {
  if (load_driver()) GTEST_SKIP() << "this machine has a driver";
  for (const bool prepared : {false, true}) {
    auto judges = Judges::start(absent_gpu());
    ASSERT_TRUE(judges) << judges.error().message;
    if (prepared) (*judges)->prepare();
    OneCase one;
    const Judges::Answer answer = one.judged_by(**judges);
    ASSERT_TRUE(answer.report.has_value());
    ASSERT_TRUE(*answer.report) << answer.report->error().message;
    EXPECT_EQ((*answer.report)->failure.rfind("no NVIDIA driver: ", 0), 0u)
        << (*answer.report)->failure;
    // Nobody asks a process again whose driver failed.
    EXPECT_FALSE((*judges)->can_go_on());
  }
}

TEST(Judges, ThatAreGoneSayNothingAboutACandidate) {
  auto judges = Judges::start(absent_gpu());
  ASSERT_TRUE(judges) << judges.error().message;
  (*judges)->stop();
  OneCase one;
  const Judges::Answer answer = one.judged_by(**judges);
  EXPECT_FALSE(answer.report.has_value());
  EXPECT_FALSE(answer.began);
  ASSERT_TRUE(answer.death) << answer.death.error().message;
  EXPECT_EQ(answer.death->end, ChildOutcome::End::stopped);
  EXPECT_FALSE((*judges)->can_go_on());
}

}  // namespace
}  // namespace rekernel
