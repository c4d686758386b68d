#include "harness/profile/ncu_pages.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/profile/metrics.h"

namespace rekernel {
namespace {

std::string page(const std::string& name) {
  const auto text =
      read_file(std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/harness/profile/pages" / name);
  if (!text) throw std::runtime_error(text.error().message);
  return *text;
}

TEST(CsvRows, TakesQuotesCommasAndLineEnds) {
  const auto rows = csv_rows("\"a, b\",\"say \"\"c\"\"\",\r\n\n1,\"two\nlines\"\nlast");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0], (std::vector<std::string>{"a, b", "say \"c\"", ""}));
  EXPECT_EQ((*rows)[1], (std::vector<std::string>{"1", "two\nlines"}));
  EXPECT_EQ((*rows)[2], std::vector<std::string>{"last"});
  EXPECT_FALSE(csv_rows("\"open"));
}

TEST(RawPage, GivesEachLaunchsMetricsInBaseUnits) {
  const auto launches = launches_in(page("raw.csv"));
  ASSERT_TRUE(launches) << launches.error().message;
  ASSERT_EQ(launches->size(), 2u);
  const LaunchMetrics& first = launches->front();
  EXPECT_EQ(first.kernel, "row_statistics");
  EXPECT_EQ(first.grid, "(4,096, 1, 1)");
  EXPECT_EQ(first.value(metric::duration), 300000);
  EXPECT_EQ(first.value(metric::dram_read), 1073741824);
  EXPECT_EQ(first.value(metric::dram_share), 86.4);
  EXPECT_FALSE(first.value(metric::sectors_per_store));                    // "n/a"
  EXPECT_NEAR(*(*launches)[1].value(metric::dynamic_shared), 8190, 1e-6);  // in kilobytes
}

TEST(RawPage, PassesOverWhatIsPrintedBeforeIt) {
  const auto launches =
      launches_in("==PROF== Connected to process 1\nsay, \"a\n\"\n" + page("raw.csv"));
  ASSERT_TRUE(launches) << launches.error().message;
  EXPECT_EQ(launches->size(), 2u);
}

TEST(RawPage, SaysWhatItExpected) {
  const auto launches = launches_in("==ERROR== no permission\n");
  ASSERT_FALSE(launches);
  EXPECT_NE(launches.error().message.find("expected one that begins with \"ID\""),
            std::string::npos);
}

TEST(SourcePage, GivesInstructionsWithTheirMainStall) {
  const auto instructions = instructions_in(page("source.csv"));
  ASSERT_TRUE(instructions) << instructions.error().message;
  ASSERT_EQ(instructions->size(), 5u);
  EXPECT_EQ((*instructions)[2].text, "@!P0 FADD R7, R4, R5");
  EXPECT_EQ((*instructions)[2].samples, 800);
  EXPECT_EQ((*instructions)[2].offset, 0x20u);
  EXPECT_EQ((*instructions)[2].stall, "long_sb");
  EXPECT_EQ((*instructions)[1].stall, "wait");  // `selected` is no stall
  EXPECT_EQ((*instructions)[4].stall, "");
}

TEST(SourcePage, KnowsOlderNamesAndCountsAddressesItself) {
  const auto instructions = instructions_in(
      "\"#\",\"Source\",\"Warp Stall Sampling (All Cycles)\"\n\"0\",\"NOP\",\"3\"\n\"1\",\"EXIT\","
      "\"1,000\"\n");
  ASSERT_TRUE(instructions) << instructions.error().message;
  EXPECT_EQ((*instructions)[1].offset, 16u);
  EXPECT_EQ((*instructions)[1].samples, 1000);
  EXPECT_FALSE(instructions_in("\"Source\"\n\"NOP\"\n"));
}

}  // namespace
}  // namespace rekernel
