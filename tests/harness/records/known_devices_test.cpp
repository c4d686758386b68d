#include "harness/records/known_devices.h"

#include <gtest/gtest.h>

#include "harness/base/text.h"
#include "harness/records/report.h"
#include "harness/records/standings.h"

namespace rekernel {
namespace {

Bench bench_on(const std::string& name) {
  Bench bench;
  bench.device_name = name;
  bench.sm = "9.0";
  bench.multiprocessors = 132;
  bench.l2_bytes = 62'914'560;
  bench.clock_khz = 1'980'000;
  bench.memory_clock_khz = 3'201'000;
  bench.memory_bus_bits = 6016;
  return bench;
}

TEST(KnownDevices, EveryCommittedRecordIsOfOne) {
  for (const std::filesystem::path& path : recorded_benches(REKERNEL_SOURCE_DIR)) {
    const Result<Bench> bench = read_bench(path);
    ASSERT_TRUE(bench.ok()) << bench.error().message;
    EXPECT_NE(find_known_device(bench->device_name), nullptr) << bench->device_name;
    EXPECT_EQ(joined(unlike_known_device(*bench), "\n"), "");
  }
}

TEST(KnownDevices, ARecordDoesNotMakeItsOwnChip) {
  Bench bench = bench_on("NVIDIA H200");
  EXPECT_EQ(joined(unlike_known_device(bench), "\n"), "");
  bench.l2_bytes = 1'000'000'000'000;
  bench.multiprocessors = 0;
  EXPECT_EQ(joined(unlike_known_device(bench), "\n"),
            "device.multiprocessors: not said, but NVIDIA H200 has 132\n"
            "device.l2_bytes: 1000000000000, but NVIDIA H200 has 62914560");
}

TEST(KnownDevices, NoCopyIsFasterThanTheMemory) {
  Bench bench = bench_on("NVIDIA H200");
  bench.ceilings.copy_bytes_per_s = 4'815'000'000'000;  // 2 · 3201 MHz · 752 bytes: 4814.3 GB/s
  EXPECT_EQ(joined(unlike_known_device(bench), "\n"),
            "ceilings.copy_bytes_per_s: 4815000000000, but the memory of NVIDIA H200 moves "
            "4814304000000 at the most");
}

TEST(KnownDevices, OfAnUnknownOneNothingIsSaidAndNothingRanked) {
  Bench bench = bench_on("NVIDIA Wonder 9000");
  bench.l2_bytes = 1;
  EXPECT_EQ(joined(unlike_known_device(bench), "\n"), "");
  BenchRow row;
  row.problem = "softmax";
  row.kernel = "fast";
  row.status = Status::passed;
  row.median_ns = 1000;
  bench.rows = {row};
  const std::vector<Standing> places = standings(bench, "softmax", {});
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].rank, 0);
  EXPECT_NE(to_text(standings_table(places), {.width = 0})
                .find("unranked: the device is not in the table of known devices; passed"),
            std::string::npos);
  EXPECT_NE(bench_caption(bench).find("132 SMs; not in the table of known devices)"),
            std::string::npos)
      << bench_caption(bench);
  bench.device_name = "NVIDIA H200";
  EXPECT_EQ(standings(bench, "softmax", {})[0].rank, 1);
}

TEST(KnownDevices, ADeviceStaysWhatItWasInTheRecordBefore) {
  const Bench before = bench_on("NVIDIA Wonder 9000");
  Bench now = before;
  EXPECT_TRUE(unlike_device_before(before, now).empty());
  now.l2_bytes = 1;
  EXPECT_EQ(joined(unlike_device_before(before, now), "\n"), "device.l2_bytes: 1, before 62914560");
  // What an older record lacks can only come.
  EXPECT_TRUE(unlike_device_before({.device_name = now.device_name}, now).empty());
}

}  // namespace
}  // namespace rekernel
