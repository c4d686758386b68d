#include "harness/report/evaluation_text.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

Evaluation passed() {
  Evaluation evaluation;
  evaluation.problem = "softmax";
  evaluation.kernel = "online";
  evaluation.status = Status::passed;
  evaluation.badges = {Badge::strict, Badge::robust};
  evaluation.badge_notes = "deterministic: repeated runs differ";
  evaluation.seeds = {1, 2, 3};
  evaluation.errors.emplace();
  evaluation.errors->max_abs = 1e-6;
  evaluation.resources = {{.name = "softmax", .registers = 40, .spill_store_bytes = 8}};
  evaluation.timing = Timing{{500'000}, 500'000, 490'000, 510'000};
  evaluation.ceiling_ns = 250'000;
  ReferenceResult library;
  library.id = "cudnn_softmax";
  library.timing.median_ns = 1'000'000;
  library.percent_of_reference = Percent{200, 199, 201};
  ReferenceResult absent;
  absent.id = "pytorch_eager";
  absent.unavailable = "no PyTorch here";
  evaluation.references = {library, absent};
  return evaluation;
}

TEST(EvaluationText, TellsVerdictBadgesErrorsAndTimes) {
  const std::string text = evaluation_text(passed());
  for (const char* part :
       {"softmax/online: passed\n", "badges: strict robust (deterministic: repeated runs differ)\n",
        "error over 3 seeds: max", "kernel softmax: 40 registers", "8 bytes of spills",
        "time 0.5000 ms", "ceiling 0.2500 ms", "200.0% of cudnn_softmax",
        "pytorch_eager: not available: no PyTorch here\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("speed of light"), std::string::npos) << "none was recorded";
}

TEST(EvaluationText, TellsTimesAtOtherSizes) {
  Evaluation evaluation = passed();
  evaluation.evidence.emplace();
  EXPECT_EQ(evaluation_text(evaluation).find("other sizes"), std::string::npos);
  evaluation.evidence->other_sizes = {
      {{{"rows", 1}, {"columns", 7}}, Status::passed, 0.1, 0},
      {{{"rows", 300}, {"columns", 5000}}, Status::passed, 0.1, 12'300}};
  std::string text = evaluation_text(evaluation);
  EXPECT_NE(text.find("at other sizes right at 2: 0.0123 ms at columns 5000, rows 300\n"),
            std::string::npos)
      << text;
  evaluation.evidence->other_sizes[1].status = Status::wrong_result;
  text = evaluation_text(evaluation);
  EXPECT_NE(text.find("at other sizes right at 1: wrong_result at columns 5000, rows 300\n"),
            std::string::npos)
      << text;
}

TEST(EvaluationText, ARejectionSaysWhyAndHasNoBadge) {
  Evaluation evaluation = passed();
  evaluation.status = Status::wrong_result;
  evaluation.message = "3 of 4 elements";
  evaluation.timing.reset();
  const std::string text = evaluation_text(evaluation);
  EXPECT_TRUE(text.starts_with("softmax/online: wrong_result: 3 of 4 elements\n")) << text;
  EXPECT_EQ(text.find("badges"), std::string::npos);
  EXPECT_EQ(text.find("time "), std::string::npos);
}

}  // namespace
}  // namespace rekernel
