#include "replay/trajectory/outcome.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <limits>

#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

Evaluation measured() {
  Evaluation evaluation;
  evaluation.problem = "softmax";
  evaluation.status = Status::passed;
  evaluation.badges = {Badge::strict, Badge::deterministic};
  evaluation.resources = {{"a", 40, 0, 0, 8, 4, {}}, {"b", 255, 0, 0, 0, 0, {}}};
  evaluation.errors = ErrorStats{};
  evaluation.errors->max_abs = 9.2e-6;
  evaluation.errors->rms = std::numeric_limits<double>::infinity();
  Timing timing;
  timing.median_ns = 512345;
  timing.samples_ns = {1, 2, 3};
  evaluation.timing = timing;
  ReferenceResult missing{"cublas", "", "not here", {}, {}, {}};
  ReferenceResult reference{"cudnn_softmax", "v9", "", {}, {}, Percent{195.18, 1, 2}};
  reference.timing.median_ns = 1000000;
  evaluation.references = {missing, reference};
  return evaluation;
}

TEST(RecordedEvaluation, HoldsEverySampleAndNoFloatingPointNumber) {
  const auto record = recorded_evaluation(measured(), "NVIDIA H200", "NVRTC 13.0");
  const std::string text = canonical_json(record);  // throws on a floating-point number
  EXPECT_NE(text.find("\"max_abs\":\"9.2e-06\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"samples_ns\":[1,2,3]"), std::string::npos) << text;
  EXPECT_NE(text.find("\"device\":\"NVIDIA H200\""), std::string::npos);
}

TEST(RecordedEvaluation, GivesItsOutcomeBack) {
  const auto outcome = outcome_from_record(recorded_evaluation(measured(), "", ""), "record");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->passed());
  EXPECT_EQ(*outcome->median_ns, 512345);
  EXPECT_EQ(outcome->reference, "cudnn_softmax");  // the first that was available
  EXPECT_EQ(outcome->permille_of_reference(), 1952);
  EXPECT_EQ(outcome->rms_error, "infinite");
  EXPECT_EQ(outcome->registers, 255);
  EXPECT_EQ(outcome->spill_bytes, 12);
  EXPECT_EQ(outcome_line(*outcome),
            "passed: 512.3 us, 195.2% of cudnn_softmax, max error 9.2e-06, 255 registers, 12 bytes "
            "of spills, strict, deterministic");
}

TEST(RecordedEvaluation, GivesTheEvaluationBackToFourDigits) {
  Evaluation before = measured();
  before.harness = "0123456789abcdef";
  before.evidence = BadgeEvidence{0.123456, {{"shifted", 2.5e-3}}, {"00ff", "00ff"}};
  before.ceilings = {4'280'000'000'000, 0};
  before.repeated_headline_ns = {7, 8};
  before.references[1].kernel_samples_ns = {5, 6};
  const Result<Evaluation> after =
      evaluation_from_record(recorded_evaluation(before, "NVIDIA H200", "NVRTC 13.0"), "record");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->timing->samples_ns, before.timing->samples_ns);
  EXPECT_EQ(after->references[1].kernel_samples_ns, before.references[1].kernel_samples_ns);
  EXPECT_EQ(after->repeated_headline_ns, before.repeated_headline_ns);
  EXPECT_EQ(after->harness, before.harness);
  EXPECT_EQ(after->ceilings.copy_bytes_per_s, before.ceilings.copy_bytes_per_s);
  ASSERT_TRUE(after->evidence);
  EXPECT_DOUBLE_EQ(*after->evidence->strict_share, 0.1235);
  EXPECT_EQ(after->evidence->stress, before.evidence->stress);
  EXPECT_EQ(after->evidence->digests, before.evidence->digests);
}

TEST(RecordedEvaluation, ShortensLongTextsAndReplacesBytesThatAreNone) {
  Evaluation evaluation;
  evaluation.status = Status::compile_failed;
  evaluation.message = "bad \xff byte\n" + std::string(100000, 'x');
  const auto record = recorded_evaluation(evaluation, "", "");
  EXPECT_LT(canonical_json(record).size(), 3000u);
  const auto outcome = outcome_from_record(record, "record");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome_line(*outcome), "compile_failed: bad ? byte");
  EXPECT_EQ(prompt_log(*outcome).substr(0, 12), "bad ? byte\nx");
}

TEST(OutcomeFromRecord, RefusesWhatItCannotUse) {
  const auto message = [](const char* text) {
    const auto outcome = outcome_from_record(boost::json::parse(text).as_object(), "line 3");
    return outcome ? "good" : outcome.error().message;
  };
  EXPECT_EQ(message(R"({"message": ""})"), "line 3: the key \"status\" is missing");
  EXPECT_EQ(message(R"({"status": "splendid", "message": ""})"),
            "line 3: status: expected a status, got \"splendid\"");
  EXPECT_EQ(message(R"({"status": "passed", "message": ""})"),
            "line 3: passed, but there is no timing");
  EXPECT_EQ(
      message(R"({"status": "passed", "message": "", "timing": {"median_ns": 0}})").substr(0, 40),
      "line 3: timing.median_ns: expected an in");
  EXPECT_EQ(message(R"({"status": "crashed", "message": "", "anything": {"else": 1}})"), "good");
}

TEST(OutcomeFromRecord, SpillsOfAnyNumberOfKernelsAddUp) {
  const std::string most = std::to_string(INT64_MAX >> 24);
  const std::string kernel = R"({"registers": 1, "spill_load_bytes": 0, "spill_store_bytes": )";
  boost::json::array kernels(1u << 16, boost::json::parse(kernel + most + "}"));
  boost::json::object record{{"status", "crashed"}, {"message", ""}, {"resources", kernels}};
  const auto outcome = outcome_from_record(record, "line 3");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->spill_bytes, (INT64_MAX >> 24) << 16);
  kernels.resize(1);
  kernels[0].at("spill_load_bytes") = INT64_MAX >> 23;
  record["resources"] = kernels;
  EXPECT_FALSE(outcome_from_record(record, "line 3"));
}

}  // namespace
}  // namespace rekernel
