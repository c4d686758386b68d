#include "replay/playback/recorded_bench.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>

#include "harness/base/json.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

namespace json = boost::json;

class RecordedBench : public ::testing::Test {
 protected:
  void SetUp() override {
    Replay replay =
        replay_exactly(trajectory_path(REKERNEL_SOURCE_DIR, "conv2d"), KeepCandidates::yes);
    ASSERT_FALSE(replay.interruption) << replay.interruption->message;
    search = std::move(replay.search);
    const auto first =
        std::find_if(search.candidates.begin(), search.candidates.end(),
                     [](const auto& one) { return one.record.contains("evidence"); });
    ASSERT_NE(first, search.candidates.end());
    candidate = *first;
  }

  ReplayedSearch search;
  ReplayedCandidate candidate;
};

TEST_F(RecordedBench, IsTheRowOfTheRecordedEvaluation) {
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  EXPECT_EQ(bench->device_name, candidate.device);
  EXPECT_EQ(bench->sm, "9.0");
  EXPECT_EQ(bench->multiprocessors, search.header.device.multiprocessors);
  EXPECT_FALSE(bench->toolchain.at("NVRTC").empty());
  EXPECT_EQ(bench->ceilings.copy_bytes_per_s, bench->rows[0].ceilings.copy_bytes_per_s);
  ASSERT_EQ(bench->rows.size(), 1u);
  const BenchRow& row = bench->rows[0];
  const json::object& record = candidate.record;
  EXPECT_EQ(row.problem, "conv2d");
  EXPECT_EQ(row.kernel, "mine");
  EXPECT_EQ(row.sha256, candidate_sha256(*candidate.candidate));
  EXPECT_EQ(row.status, Status::passed);
  EXPECT_EQ(row.badges, candidate.outcome.badges);
  EXPECT_EQ(row.measured, today());
  EXPECT_EQ(row.median_ns, *candidate.outcome.median_ns);
  EXPECT_EQ(row.low_ns, record.at("timing").at("low_ns").as_int64());
  EXPECT_EQ(row.ceiling_ns, record.at("floor_ns").as_int64());
  // The search kept no clocks; those of the chip are known.
  EXPECT_EQ(bench->memory_bus_bits, 6016);
  EXPECT_EQ(row.speed_of_light_ns, speed_of_light_ns(*find_problem("conv2d"), device_of(*bench)));
  EXPECT_GT(row.speed_of_light_ns, 0);
  EXPECT_EQ(row.witnesses.size(), 1u);
  EXPECT_EQ(row.noise_ppm, record.at("reference_noise_ppm").as_int64());
  EXPECT_EQ(row.conditions.power_w, record.at("conditions").at("power_w").as_int64());
  EXPECT_EQ(row.max_error,
            error_text(std::stod(std::string(record.at("errors").at("max_abs").as_string()))));
  ASSERT_NE(row.headline(), nullptr);
  EXPECT_EQ(row.headline()->id, candidate.outcome.reference);
  EXPECT_EQ(row.headline()->median_ns, candidate.outcome.reference_ns);
  const json::value& percent = record.at("references").at(0).at("percent");
  EXPECT_NEAR(row.headline()->percent.value,
              std::stod(std::string(percent.at("value").as_string())), 0.05);
  EXPECT_FALSE(row.library_max_error.empty());
}

TEST_F(RecordedBench, SurvivesWritingAndReading) {
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  const std::string text = pretty_json(to_json(*bench));
  const Result<json::value> read = parse_json(text, "bench.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Result<Bench> again = bench_from_json(*read, "bench.json");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(pretty_json(to_json(*again)), text);
}

TEST_F(RecordedBench, TakesTheDateOfTheRecordWhereThereIsOne) {
  candidate.record["measured"] = "2026-01-02";
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  EXPECT_EQ(bench->rows[0].measured, "2026-01-02");
}

TEST_F(RecordedBench, KnowsOnlyTheDeviceThatTheSearchTellsOf) {
  candidate.device = "NVIDIA L40S";
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  EXPECT_EQ(bench->device_name, "NVIDIA L40S");
  EXPECT_EQ(bench->multiprocessors, 0);
}

TEST_F(RecordedBench, RefusesARecordFromBeforeSamplesWereKept) {
  candidate.record.erase("evidence");
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_FALSE(bench.ok());
  EXPECT_NE(bench.error().message.find(candidate.id + ": its record is from before samples, "
                                                      "evidence and ceilings were kept"),
            std::string::npos)
      << bench.error().message;
}

TEST_F(RecordedBench, RefusesWhatDidNotPass) {
  candidate.outcome.status = Status::wrong_result;
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_FALSE(bench.ok());
  EXPECT_NE(bench.error().message.find(candidate.id + " did not pass (wrong_result)"),
            std::string::npos)
      << bench.error().message;
}

TEST_F(RecordedBench, RefusesARecordThatABenchFileCannotHold) {
  candidate.record.at("references").at(0).at("percent").at("value") = "much";
  const Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_FALSE(bench.ok());
  EXPECT_TRUE(bench.error().message.starts_with("conv2d: " + candidate.id))
      << bench.error().message;
}

TEST_F(RecordedBench, ARowIsLikeItsOrigin) {
  Result<Bench> bench = recorded_bench(search, candidate, "mine");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  BenchRow& row = bench->rows[0];
  EXPECT_TRUE(unlike_origin(row, candidate.device, candidate).empty());
  row.median_ns = row.median_ns * 2 / 3;
  row.max_error = "1.0e-09";
  const std::vector<std::string> lines = unlike_origin(row, candidate.device, candidate);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("median_ns: ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("max_error: 1.0e-09, but at its origin")) << lines[1];
  EXPECT_TRUE(unlike_origin(row, "NVIDIA L40S", candidate).empty()) << "another device";
  row.status = Status::wrong_result;
  EXPECT_EQ(unlike_origin(row, candidate.device, candidate).size(), 1u);
}

TEST(RecordedDevice, OfASearchIsTheChipOfThatName) {
  const Replay replay = replay_exactly(trajectory_path(REKERNEL_SOURCE_DIR, "conv2d-13-rounds"));
  DeviceFacts device = replay.search.header.device;
  EXPECT_TRUE(unlike_known_device(device).empty());
  device.l2_bytes = 1'000'000'000'000;
  device.copy_bytes_per_s = 20'000'000'000'000;
  EXPECT_EQ(unlike_known_device(device),
            (std::vector<std::string>{
                "device.l2_bytes: 1000000000000, but NVIDIA H200 has 62914560",
                "device.copy_bytes_per_s: 20000000000000 is more than the memory of NVIDIA H200 "
                "moves"}));
  device.name = "NVIDIA Wonder 9000";
  EXPECT_TRUE(unlike_known_device(device).empty());
}

}  // namespace
}  // namespace rekernel
