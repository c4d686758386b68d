#include "harness/records/noise.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> sequence(std::int64_t first, int count) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

/// `good` runs of equal sides and `bad` ones of sides that are a tenth apart.
NoiseRow row(int good, int bad) {
  NoiseRow row;
  row.problem = "conv2d";
  row.subject = "cudnn_fp32";
  row.details = "engine 7";
  row.measured = "2000-01-01";
  row.conditions = {.sm_clock_mhz = 1500,
                    .temperature_c = 40,
                    .power_w = 200,
                    .throttle_reasons = 4,
                    .rejected_samples = 3};
  for (int i = 0; i < good; ++i) row.runs.push_back({sequence(1000, 10), sequence(1000, 10)});
  for (int i = 0; i < bad; ++i) row.runs.push_back({sequence(1000, 10), sequence(1100, 10)});
  return row;
}

NoiseRecord record_of(std::vector<NoiseRow> rows) {
  NoiseRecord record;
  record.device_name = "NVIDIA Test 1";
  record.sm = "9.0";
  record.toolchain = {{"NVRTC", "0.0"}};
  record.rows = std::move(rows);
  return record;
}

TEST(Noise, SummaryCountsIntervalsThatContainOne) {
  const NoiseSummary summary = summarise(row(3, 1));
  EXPECT_EQ(summary.runs, 4);
  EXPECT_EQ(summary.samples, 10);
  EXPECT_EQ(summary.containing_one, 3);
  // The second smallest and the second largest of ten: 1001 and 1008.
  EXPECT_DOUBLE_EQ(summary.median_half_width, (100.0 * 1008 / 1001 - 100.0 * 1001 / 1008) / 2);
  EXPECT_DOUBLE_EQ(summary.largest_half_width, summary.median_half_width);
}

TEST(Noise, CriterionIsNinetyFiveInAHundredAndOnePercent) {
  EXPECT_TRUE(summarise(row(100, 0)).holds());
  EXPECT_TRUE(summarise(row(95, 5)).holds());
  EXPECT_FALSE(summarise(row(94, 6)).holds());
  EXPECT_FALSE(summarise(NoiseRow{}).holds());

  NoiseRow wide = row(99, 0);
  wide.runs.push_back({{985, 985, 985, 985, 985, 1015, 1015, 1015, 1015, 1015},
                       {985, 985, 985, 985, 985, 1015, 1015, 1015, 1015, 1015}});
  EXPECT_EQ(summarise(wide).containing_one, 100);
  EXPECT_FALSE(summarise(wide).holds());
}

TEST(Noise, RecordsSurviveWritingAndReading) {
  const NoiseRecord record = record_of({row(2, 1)});
  const Result<NoiseRecord> read = noise_from_json(to_json(record), "noise.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)), boost::json::serialize(to_json(record)));
  EXPECT_EQ(read->rows[0].runs[2].second_ns, sequence(1100, 10));
  EXPECT_EQ(read->rows[0].conditions.rejected_samples, 3);
}

TEST(Noise, RecordsWithoutSamplesAreRefused) {
  boost::json::value json = to_json(record_of({row(1, 0)}));
  json.at("rows").at(0).at("runs").at(0).as_object()["first_ns"] = boost::json::array();
  EXPECT_FALSE(noise_from_json(json, "noise.json").ok());
}

TEST(Noise, RowsMeasuredAgainReplaceTheOld) {
  const TemporaryFolder folder;
  NoiseRow other = row(1, 0);
  other.subject = "another";
  ASSERT_TRUE(record_noise(folder.path(), record_of({row(1, 0), other})).ok());
  const Result<fs::path> path = record_noise(folder.path(), record_of({row(5, 0)}));
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, folder.path() / "results" / "test_1" / "noise.json");
  const Result<NoiseRecord> record = load_noise(*path);
  ASSERT_TRUE(record.ok()) << record.error().message;
  ASSERT_EQ(record->rows.size(), 2u);
  EXPECT_EQ(record->rows[0].runs.size(), 5u);
  EXPECT_EQ(record->rows[1].subject, "another");
  EXPECT_EQ(recorded_noises(folder.path()), std::vector<fs::path>{*path});
}

TEST(Noise, ThePageShowsTheRecord) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "harness");
  const fs::path path = folder.path() / "harness" / "TIMING.md";
  ASSERT_TRUE(
      write_file_atomically(path, "a\n<!-- noise:start -->\nold\n<!-- noise:end -->\nb\n").ok());
  Result<std::string> page = timing_page(folder.path());
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(*page, "a\n<!-- noise:start -->\n\nNot measured yet.\n\n<!-- noise:end -->\nb\n");

  ASSERT_TRUE(record_noise(folder.path(), record_of({row(94, 6)})).ok());
  page = timing_page(folder.path());
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_NE(page->find("| conv2d | cudnn_fp32 | 0.0010 | 100 | 1 | 10 | 94 | ±0.70% | ±0.70% | 3 | "
                       "missed | 2000-01-01 |"),
            std::string::npos)
      << *page;
  EXPECT_NE(page->find("NVIDIA Test 1 (sm 9.0); NVRTC 0.0."), std::string::npos) << *page;
}

/// The intervals of every recorded A/A experiment, made again from its raw samples.
TEST(Noise, EveryRecordHolds) {
  const std::vector<fs::path> paths = recorded_noises(REKERNEL_SOURCE_DIR);
  if (paths.empty()) {
    GTEST_SKIP() << "no results/<gpu>/noise.json: `rekernel noise --record` on a GPU makes it";
  }
  for (const fs::path& path : paths) {
    const Result<NoiseRecord> record = load_noise(path);
    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_FALSE(record->rows.empty()) << path;
    for (const NoiseRow& row : record->rows) {
      const NoiseSummary summary = summarise(row);
      EXPECT_GE(summary.runs, 100) << path << ": " << row.problem << "/" << row.subject;
      EXPECT_GE(summary.samples, 60) << path << ": " << row.problem << "/" << row.subject;
      EXPECT_TRUE(summary.holds())
          << path << ": " << row.problem << "/" << row.subject << ": " << summary.containing_one
          << " of " << summary.runs << " intervals contain 1, the widest is ±"
          << summary.largest_half_width << "%";
    }
  }
}

TEST(Noise, ThePageIsThatOfTheRecords) {
  const Result<std::string> page = timing_page(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(*page, *read_file(fs::path(REKERNEL_SOURCE_DIR) / "harness" / "TIMING.md"))
      << "run `rekernel report --readme`";
}

}  // namespace
}  // namespace rekernel
