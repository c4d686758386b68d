#include "harness/evaluation/evaluation.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <cmath>
#include <limits>

#include "harness/base/harness_digest.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

Evaluation complete_evaluation() {
  Evaluation evaluation;
  evaluation.problem = "softmax";
  evaluation.kernel = "online";
  evaluation.sha256 = "abc";
  evaluation.status = Status::passed;
  evaluation.target = "sm_90a";
  evaluation.resources = {{"main", 40, 1024, 0, 8, 16, {}}};
  evaluation.compile_log = "log";
  evaluation.seeds = {1, 0xFFFFFFFFFFFFFFFFull};
  ErrorStats errors;
  errors.max_abs = 0.25;
  errors.worst_strict_ratio = std::numeric_limits<double>::infinity();
  evaluation.errors = errors;
  evaluation.badges = {Badge::strict, Badge::deterministic};
  evaluation.badge_notes = "robust: large: 3 of 4 elements";
  evaluation.timing = Timing{{3, 1, 2}, 2, 1, 3};
  evaluation.ceiling_ns = 1;
  evaluation.speed_of_light_ns = 1;
  ReferenceResult reference;
  reference.id = "cudnn_softmax";
  reference.details = "instance";
  reference.timing = Timing{{4}, 4, 4, 4};
  reference.percent_of_reference = Percent{200, 199, 201};
  reference.kernel_samples_ns = {2, 3};
  evaluation.references = {reference};
  evaluation.harness = "0123456789abcdef";
  evaluation.evidence =
      BadgeEvidence{0.5, {{"large", std::numeric_limits<double>::infinity()}}, {{"00ff", "00fe"}}};
  evaluation.ceilings = {4'280'000'000'000, 0};
  evaluation.repeated_headline_ns = {4, 5};
  evaluation.conditions = {1980, 40, 500, 4, 0};
  evaluation.split_ns = {{"compile", 5}, {"checks", 6}};
  return evaluation;
}

TEST(EvaluationJson, RoundTrips) {
  const Evaluation before = complete_evaluation();
  const boost::json::value json = to_json(before);
  Result<Evaluation> after = evaluation_from_json(JsonReader("evaluation", json));
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(boost::json::value(to_json(*after)), json);
  EXPECT_EQ(after->seeds, before.seeds);
  EXPECT_TRUE(std::isinf(after->errors->worst_strict_ratio));
  EXPECT_EQ(after->references[0].timing.samples_ns, (std::vector<std::int64_t>{4}));
}

TEST(EvaluationJson, WhatRecordingsCallTheFloorIsTheCeiling) {
  boost::json::object json = to_json(complete_evaluation());
  json.erase("ceiling_ns");
  json.erase("speed_of_light_ns");
  json["floor_ns"] = 509'536;
  const boost::json::value value = json;
  Result<Evaluation> evaluation = evaluation_from_json(JsonReader("evaluation", value));
  ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
  EXPECT_EQ(evaluation->ceiling_ns, 509'536);
  EXPECT_EQ(evaluation->speed_of_light_ns, 0) << "nobody asked for it";
  json["ceiling_ns"] = 1;
  const boost::json::value both = json;
  EXPECT_FALSE(evaluation_from_json(JsonReader("evaluation", both)).ok());
}

TEST(EvaluationReport, CarriesTheDeviceAndTheDigestOfItsReferences) {
  EvaluationReport report;
  report.evaluation = complete_evaluation();
  note_judge(report.evaluation);
  EXPECT_EQ(report.evaluation.harness,
            harness_digest(digest_of_problem("softmax"), {"cudnn_softmax"}));
  report.device.emplace();
  report.device->clock_khz = 1'980'000;
  report.device->memory_clock_khz = 3'201'000;
  report.device->memory_bus_bits = 6016;
  const Result<EvaluationReport> read = report_from_json(boost::json::serialize(to_json(report)));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->device->clock_khz, 1'980'000);
  EXPECT_EQ(read->device->memory_clock_khz, 3'201'000);
  EXPECT_EQ(read->device->memory_bus_bits, 6016);
  EXPECT_EQ(read->evaluation.harness, report.evaluation.harness);
}

TEST(EvaluationJson, AnUnknownStatusIsAnError) {
  boost::json::object json = to_json(complete_evaluation());
  json["status"] = "splendid";
  const boost::json::value value = json;
  Result<Evaluation> evaluation = evaluation_from_json(JsonReader("evaluation", value));
  ASSERT_FALSE(evaluation.ok());
  EXPECT_NE(evaluation.error().message.find("status"), std::string::npos);
}

TEST(Evaluation, EveryStatusHasANameOfItsOwn) {
  for (int i = 0; i <= static_cast<int>(Status::forged_time); ++i) {
    const auto status = static_cast<Status>(i);
    EXPECT_EQ(status_from_string(to_string(status)), status);
  }
  EXPECT_EQ(status_from_string("PASSED"), std::nullopt);
}

TEST(Evaluation, OnlyAPassedKernelHasBadges) {
  Evaluation evaluation = complete_evaluation();
  EXPECT_EQ(evaluation.earned_badges(), (Badges{Badge::strict, Badge::deterministic}));
  evaluation.status = Status::wrong_result;
  EXPECT_TRUE(evaluation.earned_badges().empty());
}

TEST(Evaluation, HeadlineIsTheFirstReferenceThatRan) {
  Evaluation evaluation = complete_evaluation();
  ReferenceResult refused;
  refused.id = "cudnn_layernorm";
  refused.unavailable = "refused";
  evaluation.references.insert(evaluation.references.begin(), refused);
  ASSERT_NE(evaluation.headline(), nullptr);
  EXPECT_EQ(evaluation.headline()->id, "cudnn_softmax");
}

TEST(EvaluateOptionsJson, CarriesEverySetting) {
  EvaluateOptions options;
  options.references = {"cudnn_fp32"};
  options.external_references = {"pytorch_eager"};
  options.device = 1;
  options.samples = 30;
  options.seed = 7;
  options.stress = false;
  options.mode = EvaluateOptions::Mode::noise;
  options.shared_gpu = true;
  options.planted_gap = std::chrono::microseconds(200);
  options.noise_runs = 100;
  options.noise_subject = "cudnn_fp32";
  const boost::json::value json = to_json(options);
  const Result<EvaluateOptions> read = evaluate_options_from_json(JsonReader("options", json));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)), boost::json::serialize(json));
  EXPECT_EQ(read->mode, EvaluateOptions::Mode::noise);
  EXPECT_TRUE(read->shared_gpu);
  EXPECT_EQ(read->planted_gap, options.planted_gap);
  EXPECT_EQ(read->noise_runs, 100);
  EXPECT_EQ(read->noise_subject, "cudnn_fp32");
}

}  // namespace
}  // namespace rekernel
