#include "harness/records/ceiling_spread.h"

#include <gtest/gtest.h>

#include "harness/base/text.h"

namespace rekernel {
namespace {

Bench bench_with(const std::vector<Ceilings>& ceilings) {
  Bench bench;
  for (const Ceilings& one : ceilings) {
    BenchRow row;
    row.problem = "softmax";
    row.kernel = "k" + std::to_string(bench.rows.size());
    row.ceilings = one;
    bench.rows.push_back(std::move(row));
  }
  return bench;
}

TEST(CeilingSpread, TheCommittedRowsAgree) {
  for (const std::filesystem::path& path : recorded_benches(REKERNEL_SOURCE_DIR)) {
    const Result<Bench> bench = read_bench(path);
    ASSERT_TRUE(bench.ok()) << bench.error().message;
    EXPECT_EQ(joined(outlying_ceilings(*bench), "\n"), "") << path;
  }
}

TEST(CeilingSpread, ARowWithOtherCeilingsThanTheRestIsNamed) {
  const Bench bench = bench_with({{4'000'000'000'000, 800'000'000'000'000},
                                  {4'040'000'000'000, 0},
                                  {3'980'000'000'000, 780'000'000'000'000},
                                  {20'000'000'000'000, 800'000'000'000'000}});
  EXPECT_EQ(joined(outlying_ceilings(bench), "\n"),
            "rows[3] (softmax/k3): ceilings.copy_bytes_per_s: 20000000000000 is +400.0% from the "
            "other rows' median, 4000000000000; expected 3% at most");
  const Bench product = bench_with({{4'000'000'000'000, 800'000'000'000'000},
                                    {4'000'000'000'000, 800'000'000'000'000},
                                    {4'000'000'000'000, 700'000'000'000'000}});
  EXPECT_NE(
      joined(outlying_ceilings(product), "\n").find("rows[2] (softmax/k2): ceilings.fp16_flo"),
      std::string::npos);
}

TEST(CeilingSpread, OneRowAloneHasNothingToAgreeWith) {
  EXPECT_TRUE(outlying_ceilings(bench_with({{1, 1}})).empty());
  EXPECT_TRUE(outlying_ceilings(bench_with({{4'000'000'000'000, 0}, {0, 0}})).empty());
}

}  // namespace
}  // namespace rekernel
