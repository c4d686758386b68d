#include "replay/playback/examination.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "tests/forgery.h"
#include "tests/replay/fakes.h"

namespace rekernel::testing {
namespace {

namespace json = boost::json;

/// A candidate of the search's problem.
Candidate scaffold() { return scaffold_candidate(*find_problem("softmax"), "mine"); }

std::vector<std::int64_t> samples_round(std::int64_t middle_ns) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < 60; ++i) samples.push_back(middle_ns - 30 + i * 17 % 60);
  return samples;
}

/// What a search on the header's device records of it.
json::object honest_record(const Header& header) {
  const Problem& problem = *find_problem("softmax");
  Evaluation evaluation;
  evaluation.problem = problem.id;
  evaluation.kernel = "mine";
  evaluation.sha256 = candidate_sha256(scaffold());
  evaluation.status = Status::passed;
  evaluation.target = header.device.target;
  evaluation.harness = harness_digest(digest_of_problem(problem.id), {});
  evaluation.resources = {{.name = "softmax", .registers = 40}};
  evaluation.seeds = {1, 2, 3, 4, 5};
  evaluation.errors.emplace();
  evaluation.errors->max_abs = 5.4561e-10;
  evaluation.errors->rms = 2.37e-12;
  evaluation.errors->truth_rms = 2.516e-05;
  evaluation.errors->worst_tolerance_ratio = 5.4e-08;
  evaluation.badges = {Badge::strict, Badge::robust, Badge::deterministic};
  evaluation.evidence.emplace();
  evaluation.evidence->strict_share = 5.4e-06;
  for (const StressCase& stress : problem.stress_cases) {
    evaluation.evidence->stress.emplace_back(stress.name, 0.012345);
  }
  evaluation.evidence->digests = {{"00ff", "00ff", "00ff"}};
  evaluation.timing = summarise(samples_round(600'000));
  evaluation.ceilings = {4'280'000'000'000, 0};
  evaluation.ceiling_ns = ceiling_ns(problem, evaluation.ceilings);
  evaluation.speed_of_light_ns = 432'994;
  ReferenceResult reference;
  reference.id = header.settings.references.front();
  reference.timing = summarise(samples_round(1'517'000));
  reference.percent_of_reference =
      percent_of_reference(reference.timing.samples_ns, evaluation.timing->samples_ns);
  evaluation.references = {reference};
  evaluation.repeated_headline_ns = samples_round(1'517'100);
  evaluation.reference_noise_ppm =
      noise_ppm(reference.timing.samples_ns, evaluation.repeated_headline_ns);
  return recorded_evaluation(evaluation, header.device.name, "NVRTC 13.0");
}

/// The record as recordings from before samples were kept have it.
json::object older(json::object record) {
  for (const char* key :
       {"harness", "evidence", "ceilings", "repeated_headline_ns", "speed_of_light_ns"}) {
    record.erase(key);
  }
  record["floor_ns"] = record.at("ceiling_ns");
  record.erase("ceiling_ns");
  for (json::value* timing : {&record.at("timing"), &record.at("references").at(0).at("timing")}) {
    timing->as_object().erase("samples_ns");
    timing->as_object()["samples"] = 60;
  }
  return record;
}

class Examination : public ::testing::Test {
 protected:
  std::string complaints_about(const json::object& record, EvaluationExaminer& examiner,
                               const std::string& id = "r1.i1.b1") {
    const Candidate candidate = scaffold();
    const Result<Outcome> outcome = outcome_from_record(record, id);
    if (!outcome) return outcome.error().message;
    CandidateReport report;
    report.id = id;
    report.candidate = &candidate;
    report.outcome = &*outcome;
    report.record = &record;
    examiner.examine(report);
    return rekernel::joined(examiner.found(), "\n");
  }
  std::string complaints_about(const json::object& record) {
    EvaluationExaminer examiner(header_);
    return complaints_about(record, examiner);
  }

  Header header_ = small_header();
};

/// The complaint begins so after "evaluation r1.i1.b1: ".
const Forgery forgeries[] = {
    {"timing/median_ns", "1000", "timing.median_ns: 1000, but its samples give 600000"},
    {"timing/low_ns", "600100", "timing.low_ns: 600100"},
    {"timing/high_ns", "7", "timing.high_ns: 7"},
    {"timing/samples_ns", "[5, 5]", "timing.median_ns: 600000, but its samples give 5"},
    {"timing/fastest_ns", "5", "timing: unknown key \"fastest_ns\""},
    {"praise", "\"the best ever\"", "unknown key \"praise\""},
    {"references/0/percent/value", "\"900\"", "references.cudnn_softmax.percent.value: 900%"},
    {"references/0/percent/low", "\"10\"", "references.cudnn_softmax.percent.low: 10%"},
    {"references/0/timing/median_ns", "9000000",
     "references.cudnn_softmax.timing.median_ns: 9000000"},
    {"references/0/id", "\"cudnn_slow\"", "references: not those of the search's settings"},
    {"reference_noise_ppm", "1", "reference_noise_ppm: 1, but the samples give"},
    {"errors/failing", "12", "errors.failing: 12, but the status is passed"},
    {"errors/unwritten", "3", "errors.unwritten: 3, but the status is passed"},
    {"errors/max_abs", "\"1e+09\"", "errors.max_abs: largest error 1e+09"},
    {"errors/max_abs", "null", "errors.max_abs: largest error inf"},
    {"errors/rms", "\"1\"", "errors.rms: "},
    {"errors/worst_tolerance_ratio", "\"40\"", "errors.worst_tolerance_ratio: 40, but"},
    {"errors/first_failing", "17", "errors.first_failing: an element"},
    {"device", "\"\"", "device: none, but there are times"},
    {"target", "\"sm_80\"", "target: sm_80, but the search writes code for sm_90a"},
    {"problem", "\"layernorm\"", "problem: 'layernorm', but the search is for softmax"},
    {"kernel", "\"yours\"", "kernel: 'yours', but the reply's plan says 'mine'"},
    {"sha256", "\"0123\"", "sha256: expected 64 hexadecimal digits"},
    {"seeds", "[1, 2]", "seeds: 2, but a verdict needs 5"},
    {"seeds", "[1, 2, 3, 4, 4]", "seeds: one appears twice"},
    {"message", "\"all good\"", "message: a kernel that passed has none"},
    {"strict", "false", "badges: strict is missing"},
    {"badge_notes", "\"robust: shifted\"", "badge_notes: they say why robust was refused"},
    {"evidence/strict_share", "\"2\"", "badges: strict, but evidence.strict_share is 2"},
    {"evidence/digests", "[\"00ff\", \"00ff\", \"0\"]", "evidence.digests: different"},
    {"ceiling_ns", "1", "ceiling_ns: 1, but the ceilings give"},
    {"speed_of_light_ns", "1", "speed_of_light_ns: 1, but the device's attributes give 432994"},
    {"speed_of_light_ns", "900000", "timing.median_ns: 600000 is below the speed of light, 900000"},
    {"resources/0/registers", "400", "resources.softmax.registers: 400"},
};

TEST_F(Examination, AnHonestRecordHasNone) {
  EXPECT_EQ(complaints_about(honest_record(header_)), "");
  // Its header did not tell what the speed of light takes.
  header_.device.clock_khz = header_.device.memory_clock_khz = header_.device.memory_bus_bits = 0;
  EXPECT_EQ(complaints_about(older(honest_record(header_))), "");
}

TEST_F(Examination, EachForgeryIsRefusedWithItsField) {
  for (const Forgery& forgery : forgeries) {
    json::value record = honest_record(header_);
    at(record, forgery.place) = json::parse(forgery.value);
    const std::string complaints = complaints_about(record.as_object());
    EXPECT_NE(complaints.find(std::string("evaluation r1.i1.b1: ") + forgery.complaint),
              std::string::npos)
        << forgery.place << " = " << forgery.value << ":\n"
        << complaints;
  }
}

TEST_F(Examination, WithoutSamplesTheSummariesAreHeldAgainstEachOther) {
  const Forgery of_older[] = {
      {"timing/median_ns", "590000", "timing.median_ns: 590000 is outside of its own quartiles"},
      {"references/0/percent/value", "\"900\"", "references.cudnn_softmax.percent.value: 900% is"},
      {"references/0/timing/median_ns", "1600000",
       "references.cudnn_softmax.percent.value: 252.8%, but the medians give"},
      {"errors/failing", "12", "errors.failing: 12"},
      {"timing/high_ns", "599999", "timing.median_ns: 600000 is outside of its own quartiles"}};
  for (const Forgery& forgery : of_older) {
    json::value record = older(honest_record(header_));
    at(record, forgery.place) = json::parse(forgery.value);
    const std::string complaints = complaints_about(record.as_object());
    EXPECT_NE(complaints.find(forgery.complaint), std::string::npos)
        << forgery.place << " = " << forgery.value << ":\n"
        << complaints;
  }
  json::object fast = older(honest_record(header_));
  for (const char* key : {"median_ns", "low_ns", "high_ns"}) {
    fast.at("timing").as_object()[key] = 1000;
  }
  EXPECT_NE(complaints_about(fast).find("1000 is below the speed of light, 432994"),
            std::string::npos);
}

TEST_F(Examination, OneSearchIsMeasuredOnOneDevice) {
  EvaluationExaminer examiner(header_);
  json::object record = honest_record(header_);
  EXPECT_EQ(complaints_about(record, examiner), "");
  record["device"] = "NVIDIA H100 80GB HBM3";
  EXPECT_EQ(complaints_about(record, examiner, "r1.i1.b2"),
            "evaluation r1.i1.b2: device: 'NVIDIA H100 80GB HBM3', but r1.i1.b1 was measured on "
            "'NVIDIA H200'");
  header_.settings.mixed_gpus = true;
  EvaluationExaminer tolerant(header_);
  EXPECT_EQ(complaints_about(honest_record(header_), tolerant), "");
  EXPECT_EQ(complaints_about(record, tolerant, "r1.i1.b2"), "");
  // Older records say nothing of their GPU's rates: those of the search's own do not count there.
  EXPECT_EQ(complaints_about(older(record), tolerant, "r1.i1.b3"), "");
  record["device"] = "";
  EXPECT_NE(complaints_about(record, tolerant, "r1.i1.b4").find("device: none"), std::string::npos);
}

/// Writes made-up evaluations into a search's file as the search itself would.
class ForgingEvaluator : public FakeEvaluator {
 public:
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override {
    return FakeEvaluator::evaluate(requests, [&](std::size_t i, json::object record) {
      if (record.contains("timing")) record.at("errors").as_object()["failing"] = 12;
      return arrived(i, std::move(record));
    });
  }
};

TEST_F(Examination, AForgedSearchDoesNotReplayHoweverWellChained) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "forged.jsonl";
  FakeModel model;
  ForgingEvaluator forger;
  const SearchEnd end = run_on_file(path, header_, model, forger);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const Replay replay = replay_exactly(path);
  ASSERT_TRUE(replay.interruption);
  EXPECT_EQ(replay.interruption->kind, Interruption::Kind::bad_file);
  EXPECT_TRUE(replay.interruption->message.starts_with(path.string() + ": evaluation "))
      << replay.interruption->message;
  EXPECT_NE(replay.interruption->message.find("errors.failing: 12, but the status is passed"),
            std::string::npos);
}

}  // namespace
}  // namespace rekernel::testing
