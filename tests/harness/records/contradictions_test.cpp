#include "harness/records/contradictions.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "tests/forgery.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace json = boost::json;

using Samples = std::vector<std::int64_t>;

/// As many as a bench takes, a nanosecond apart, in no order.
Samples samples_round(std::int64_t middle_ns) {
  Samples samples;
  for (std::int64_t i = 0; i < 60; ++i) samples.push_back(middle_ns - 30 + i * 17 % 60);
  return samples;
}

ReferenceResult reference(const std::string& id, std::int64_t middle_ns, const Samples& kernel) {
  ReferenceResult result;
  result.id = id;
  result.timing = summarise(samples_round(middle_ns));
  result.percent_of_reference = percent_of_reference(result.timing.samples_ns, kernel);
  return result;
}

/// What an honest judge writes down of an honest kernel.
Evaluation honest(const std::string& kernel) {
  const Problem& problem = *find_problem("softmax");
  Evaluation evaluation;
  evaluation.problem = problem.id;
  evaluation.kernel = kernel;
  evaluation.sha256 = std::string(64, kernel.front());
  evaluation.status = Status::passed;
  evaluation.target = "sm_90a";
  evaluation.harness =
      harness_digest(digest_of_problem(problem.id), {"cudnn_softmax", "pytorch_eager"});
  evaluation.resources = {{.name = "softmax", .registers = 126}};
  evaluation.seeds = {1, 2, 3, 4, 5};
  ErrorStats errors;
  errors.max_abs = 5.456e-10;
  errors.rms = 2.37e-12;
  errors.truth_rms = 2.516e-05;
  errors.worst_tolerance_ratio = 5.4e-08;
  evaluation.errors = errors;
  evaluation.badges = {Badge::strict, Badge::robust, Badge::deterministic};
  evaluation.evidence.emplace();
  evaluation.evidence->strict_share = 5.4e-06;
  for (const StressCase& stress : problem.stress_cases) {
    evaluation.evidence->stress.emplace_back(stress.name, 0.01);
  }
  evaluation.evidence->digests = {{"00ff", "00ff", "00ff"}};
  if (kernel == "a_kernel") {
    evaluation.badges.set(Badge::any_size);
    evaluation.evidence->other_sizes = {
        {{{"rows", 1}, {"columns", 7}}, Status::passed, 0.01, 0},
        {{{"rows", 300}, {"columns", 5000}}, Status::passed, 0.01, 9000}};
  }
  evaluation.timing = summarise(samples_round(550'000));
  Witness witness;
  witness.median_ns = 551'000;
  witness.tolerance_ns = 9'000;
  evaluation.witnesses = {witness, witness};
  evaluation.ceilings = {4'280'000'000'000, 0};
  evaluation.ceiling_ns = ceiling_ns(problem, evaluation.ceilings);
  evaluation.speed_of_light_ns = 432'994;
  evaluation.references = {reference("cudnn_softmax", 1'517'000, evaluation.timing->samples_ns),
                           reference("pytorch_eager", 1'600'000, samples_round(551'000))};
  evaluation.references[1].kernel_samples_ns = samples_round(551'000);
  evaluation.repeated_headline_ns = samples_round(1'517'100);
  evaluation.reference_noise_ppm =
      noise_ppm(evaluation.references[0].timing.samples_ns, evaluation.repeated_headline_ns);
  evaluation.conditions = {1980, 41, 231, 0, 0};
  return evaluation;
}

Bench honest_bench() {
  Bench bench;
  bench.device_name = "NVIDIA H200";
  bench.sm = "9.0";
  bench.multiprocessors = 132;
  bench.l2_bytes = 62'914'560;
  bench.clock_khz = 1'980'000;
  bench.memory_clock_khz = 3'201'000;
  bench.memory_bus_bits = 6016;
  for (const char* kernel : {"a_kernel", "b_kernel"}) {
    bench.rows.push_back(bench_row(honest(kernel), {{"NVRTC", "13.0"}}));
  }
  summarise_rows(bench);
  return bench;
}

std::string all_of(const std::vector<std::string>& lines) { return joined(lines, "\n"); }

/// Each alone, in an honest record. The complaint begins so after "bench.json: ".
const Forgery forgeries[] = {
    {"rows/0/median_ns", "1", "rows[0] (softmax/a_kernel): median_ns: 1, but its samples give"},
    {"rows/0/median_ns", "700000", "rows[0] (softmax/a_kernel): median_ns: 700000"},
    {"rows/0/low_ns", "550001", "rows[0] (softmax/a_kernel): low_ns: 550001"},
    {"rows/0/high_ns", "549999", "rows[0] (softmax/a_kernel): high_ns: 549999"},
    {"rows/0/samples_ns/7", "1", "rows[0] (softmax/a_kernel): median_ns: 550000, but its samples"},
    {"rows/0/samples_ns", "[1, 1, 1, 1]",
     "rows[0] (softmax/a_kernel): median_ns: 550000, but its samples give 1"},
    {"rows/0/ceiling_ns", "1", "rows[0] (softmax/a_kernel): ceiling_ns: 1, but the ceilings give"},
    {"rows/0/speed_of_light_ns", "1",
     "rows[0] (softmax/a_kernel): speed_of_light_ns: 1, but the device's attributes give 432994"},
    {"device/memory_clock_khz", "1000000",
     "rows[0] (softmax/a_kernel): speed_of_light_ns: 432994, but the device's attributes give"},
    {"rows/0/witnesses/1/excess_ns", "9001",
     "rows[0] (softmax/a_kernel): witness: the GPU was busy with it for 551.0 us"},
    {"rows/0/witnesses/0/median_ns", "423000",
     "rows[0] (softmax/a_kernel): median_ns: 423000 is below the speed of light, 432994"},
    {"rows/0/witnesses", "[]", "rows[0].witnesses: expected"},
    {"schema", "2", "schema: expected 3"},
    {"rows/0/ceilings/copy_bytes_per_s", "8000000000000",
     "ceilings.copy_bytes_per_s: 4280000000000, but the rows' best is"},
    {"ceilings/copy_bytes_per_s", "9000000000000", "ceilings.copy_bytes_per_s: 9000000000000"},
    {"ceilings/fp16_flops_per_s", "1", "ceilings.fp16_flops_per_s: 1, but the rows' best is 0"},
    {"toolchain/NVRTC", "\"14.0\"", "toolchain: not what the rows were measured with"},
    {"rows/0/references/cudnn_softmax/median_ns", "3000000",
     "rows[0] (softmax/a_kernel): references.cudnn_softmax.median_ns: 3000000"},
    {"rows/0/references/cudnn_softmax/percent", "50864000", "rows[0].percent_of_reference"},
    {"rows/1/references/pytorch_eager/percent", "400",
     "rows[1] (softmax/b_kernel): references.pytorch_eager.percent: 400%"},
    {"rows/0/references/pytorch_eager/low", "1",
     "rows[0] (softmax/a_kernel): references.pytorch_eager.low: 1%, but the samples give"},
    {"rows/0/references/pytorch_eager/high", "280",
     "rows[0] (softmax/a_kernel): references.pytorch_eager.percent: 290"},
    {"rows/0/references/pytorch_eager/kernel_samples_ns", "[5, 5]",
     "rows[0] (softmax/a_kernel): references.pytorch_eager.percent:"},
    {"rows/0/percent_of_reference/headline", "500", "rows[0].percent_of_reference"},
    {"rows/0/percent_of_reference/reference", "\"pytorch_eager\"", "rows[0].percent_of_reference"},
    {"rows/0/noise_ppm", "0", "rows[0] (softmax/a_kernel): noise_ppm: 0, but the samples give"},
    {"rows/0/repeated_headline_ns", "[1517000]",
     "rows[0] (softmax/a_kernel): repeated_headline_ns:"},
    {"rows/0/badges", "[\"strict\", \"robust\", \"deterministic\", \"fastest\"]",
     "rows[0].badges[3]: expected one of strict, robust, deterministic"},
    {"rows/0/evidence/other_sizes/1/status", "\"wrong_result\"",
     "rows[0] (softmax/a_kernel): evidence.other_sizes: at columns 5000, rows 300: wrong_result, "
     "but"},
    {"rows/0/evidence/other_sizes/0/tolerance_share", "\"3\"",
     "rows[0] (softmax/a_kernel): evidence.other_sizes: at columns 7, rows 1: 3 of the tolerance"},
    {"rows/0/evidence/other_sizes/0/sizes/rows", "4096",
     "rows[0] (softmax/a_kernel): evidence.other_sizes: at columns 7, rows 4096: no sizes that"},
    {"rows/1/badges", "[\"strict\", \"robust\", \"deterministic\", \"any_size\"]",
     "rows[1] (softmax/b_kernel): evidence.other_sizes: missing"},
    {"rows/0/badges", "[\"strict\", \"strict\", \"robust\"]",
     "rows[0].badges[1]: strict is there twice"},
    {"rows/0/badges", "[\"robust\", \"deterministic\"]",
     "rows[0] (softmax/a_kernel): badges: strict is missing"},
    {"rows/0/badge_notes", "\"strict: an element misses\"",
     "rows[0] (softmax/a_kernel): badge_notes: they say why strict was refused"},
    {"rows/0/evidence/strict_share", "\"1.5\"",
     "rows[0] (softmax/a_kernel): badges: strict, but evidence.strict_share is 1.5"},
    {"rows/0/evidence/stress", "{}", "rows[0] (softmax/a_kernel): evidence.stress."},
    {"rows/0/evidence/digests", "[[\"00ff\", \"00ff\"], [\"00ff\", \"00fe\"]]",
     "rows[0] (softmax/a_kernel): evidence.digests: different"},
    {"rows/0/evidence/digests", "[]", "rows[0] (softmax/a_kernel): evidence.digests: 0, but"},
    {"rows/0/status", "\"wrong_result\"", "rows[0] (softmax/a_kernel): message: none, but"},
    {"rows/0/message", "\"12 elements outside the tolerance\"",
     "rows[0] (softmax/a_kernel): message: a kernel that passed has none"},
    {"rows/0/max_error", "\"1.0e+09\"", "rows[0] (softmax/a_kernel): max_error: largest error"},
    {"rows/0/rms_error", "\"1.0e-04\"", "rows[0] (softmax/a_kernel): rms_error: 0.0001 is more"},
    {"rows/0/tolerance_share", "\"12\"", "rows[0] (softmax/a_kernel): tolerance_share: 12, but"},
    {"rows/0/max_error", "\"little\"", "rows[0] (softmax/a_kernel): rms_error:"},
    {"rows/0/problem", "\"sofmax\"",
     "rows[0] (sofmax/a_kernel): problem: 'sofmax' is not a problem"},
    {"rows/0/problem", "\"layernorm\"",
     "rows[0] (layernorm/a_kernel): evidence.stress.mean_1000_deviation_0.1: missing"},
    {"rows/0/sha256", "\"0123\"", "rows[0] (softmax/a_kernel): sha256: expected 64"},
    {"rows/0/kernel", "\"b_kernel\"", "rows[1] (softmax/b_kernel): kernel: it appears twice"},
    {"rows/0/measured", "\"2031-01-01\"", "rows[0] (softmax/a_kernel): measured: expected a day"},
    {"rows/0/measured", "\"2026-02-30\"", "rows[0] (softmax/a_kernel): measured: expected a day"},
    {"rows/0/resources/0/registers", "300",
     "rows[0] (softmax/a_kernel): resources.softmax.registers: 300, but"},
    {"rows/0/conditions/rejected_samples", "3",
     "rows[0] (softmax/a_kernel): conditions.rejected_samples: 3, but"},
    {"device/l2_bytes", "1000000000000", "device.l2_bytes: 1000000000000, but NVIDIA H200 has"},
    {"device/multiprocessors", "0", "device.multiprocessors: not said, but NVIDIA H200 has 132"},
    {"rows/0/ceilings/copy_bytes_per_s", "6000000000000",
     "rows[0] (softmax/a_kernel): ceilings.copy_bytes_per_s: 6000000000000 is +"},
    {"device/name", "\"NVIDIA L40S\"", "device.name: 'NVIDIA L40S' belongs into results/l40s"},
    {"rows/0/harness", "\"\"", "rows[0]: samples, evidence, ceilings, toolchain or harness"},
    {"rows/0/fastest", "true", "rows[0]: unknown key \"fastest\""},
};

class Contradictions : public ::testing::Test {
 protected:
  /// What load_bench says of the record in its place.
  std::string complaint_about(const json::value& record) {
    const std::filesystem::path path = folder_ / "results/h200/bench.json";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << json::serialize(record);
    const Result<Bench> bench = load_bench(path);
    return bench.ok() ? "" : bench.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(Contradictions, AnHonestRecordHasNone) {
  EXPECT_EQ(complaint_about(to_json(honest_bench())), "");
}

TEST_F(Contradictions, EachForgeryIsRefusedWithFileAndField) {
  for (const Forgery& forgery : forgeries) {
    json::value record = to_json(honest_bench());
    at(record, forgery.place) = json::parse(forgery.value);
    const std::string complaint = complaint_about(record);
    EXPECT_NE(complaint.find("results/h200/bench.json: " + std::string(forgery.complaint)),
              std::string::npos)
        << forgery.place << " = " << forgery.value << ":\n"
        << complaint;
  }
}

TEST_F(Contradictions, AllOfThemAreNamedAtOnce) {
  json::value record = to_json(honest_bench());
  at(record, "rows/0/median_ns") = 1;
  at(record, "rows/1/ceiling_ns") = 1;
  at(record, "rows/1/measured") = "yesterday";
  const std::string complaint = complaint_about(record);
  for (const char* field :
       {"rows[0] (softmax/a_kernel): median_ns", "rows[1] (softmax/b_kernel): ceiling_ns",
        "rows[1] (softmax/b_kernel): measured"}) {
    EXPECT_NE(complaint.find(field), std::string::npos) << complaint;
  }
}

// Another judge may have counted the work otherwise: what it said cannot be made again.
TEST_F(Contradictions, BoundsOfAnotherJudgeAreItsOwn) {
  Bench bench = honest_bench();
  bench.rows[0].ceiling_ns += 1000;
  bench.rows[0].speed_of_light_ns -= 1000;
  EXPECT_NE(complaint_about(to_json(bench)).find("ceiling_ns"), std::string::npos);
  bench.rows[0].harness.replace(0, 16, "0123456789abcdef");
  EXPECT_EQ(complaint_about(to_json(bench)), "");
}

TEST_F(Contradictions, ATimeBelowTheSpeedOfLightIsNotBelievedHoweverConsistent) {
  Bench bench = honest_bench();
  Evaluation fast = honest("a_kernel");
  fast.timing = summarise(samples_round(100'000));
  for (ReferenceResult& one : fast.references) {
    if (one.kernel_samples_ns.empty()) {
      one.percent_of_reference =
          percent_of_reference(one.timing.samples_ns, fast.timing->samples_ns);
    }
  }
  bench.rows[0] = bench_row(fast, {{"NVRTC", "13.0"}});
  EXPECT_NE(
      complaint_about(to_json(bench)).find("median_ns: 100000 is below the speed of light, 432994"),
      std::string::npos);
}

TEST_F(Contradictions, OnlyRowsOfAnOlderJudgeMayLackWitnesses) {
  Bench bench = honest_bench();
  bench.rows[0].witnesses.clear();
  EXPECT_NE(complaint_about(to_json(bench))
                .find("rows[0] (softmax/a_kernel): witnesses: none, but the status is passed"),
            std::string::npos);
  bench.rows[0].harness = "0123456789abcdef";
  EXPECT_EQ(complaint_about(to_json(bench)), "");
}

TEST_F(Contradictions, OneDevicesPassedIsAnothersWrongResult) {
  Bench first = honest_bench();
  Bench second = honest_bench();
  second.rows[1].status = Status::wrong_result;
  const std::vector<std::string> found = contradictions_between(
      {{"results/h100/bench.json", first}, {"results/h200/bench.json", second}});
  EXPECT_EQ(all_of(found),
            "results/h200/bench.json: softmax/b_kernel: status: wrong_result, but "
            "results/h100/bench.json says that the same source and plan passed");
  second.rows[1].status = Status::launch_failed;  // the other device may lack what it takes
  EXPECT_TRUE(contradictions_between({{"a", first}, {"b", second}}).empty());
}

TEST(EvaluationContradictions, RoundingIsNone) {
  Evaluation evaluation = honest("a_kernel");
  EXPECT_EQ(all_of(contradictions(evaluation, {})), "");
  evaluation.references[0].percent_of_reference->value *= 1.0004;
  EXPECT_NE(all_of(contradictions(evaluation, {})).find("percent.value"), std::string::npos);
  const EvaluationContext rounded{
      .errors_rounding = 5e-4, .shares_rounding = 5e-4, .percent_rounding = 5e-4};
  EXPECT_EQ(all_of(contradictions(evaluation, rounded)), "");
}

}  // namespace
}  // namespace rekernel
