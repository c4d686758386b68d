#include "harness/records/record.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/records/report.h"

namespace rekernel {
namespace {

BenchRow row(const std::string& problem, const std::string& kernel, std::int64_t median_ns) {
  BenchRow one;
  one.problem = problem;
  one.kernel = kernel;
  one.sha256 = "0123";
  one.status = Status::passed;
  one.badges = {Badge::strict, Badge::robust};
  one.measured = "2026-11-21";
  one.median_ns = median_ns;
  one.ceiling_ns = 500'000;
  one.speed_of_light_ns = 420'000;
  one.samples_ns = {median_ns};
  one.harness = "0123456789abcdef";
  one.toolchain = {{"cuDNN", "9.14.0"}};
  one.ceilings = {4'280'000'000'000, 790'000'000'000'000};
  one.evidence.emplace();
  one.max_error = "1.2e-06";
  one.references = {{"cudnn_layernorm", "", "refused", 0, {}},
                    {"cudnn_softmax", "instance", "", 2 * median_ns, {200.04, 199.0, 201.0}},
                    {"cudnn_other", "", "", median_ns, {100.0, 99.0, 101.0}}};
  return one;
}

Bench bench_of(std::vector<BenchRow> rows) {
  Bench bench;
  bench.device_name = "NVIDIA H200";
  bench.sm = "9.0";
  bench.multiprocessors = 132;
  bench.l2_bytes = 62'914'560;
  bench.clock_khz = 1'980'000;
  bench.memory_clock_khz = 3'201'000;
  bench.memory_bus_bits = 6016;
  bench.rows = std::move(rows);
  summarise_rows(bench);
  return bench;
}

TEST(BenchRecord, HasTheContractsShape) {
  const boost::json::object json = to_json(bench_of({row("softmax", "online", 600'000)}));
  EXPECT_EQ(json.at("schema"), 3);
  EXPECT_EQ(json.at("device").at("clock_khz"), 1'980'000);
  EXPECT_EQ(json.at("device").at("memory_clock_khz"), 3'201'000);
  EXPECT_EQ(json.at("device").at("memory_bus_bits"), 6016);
  EXPECT_EQ(json.at("device").at("name"), "NVIDIA H200");
  EXPECT_EQ(json.at("ceilings").at("copy_bytes_per_s"), 4'280'000'000'000);
  const boost::json::value& first = json.at("rows").at(0);
  EXPECT_EQ(first.at("status"), "passed");
  EXPECT_EQ(first.at("median_ns"), 600'000);
  EXPECT_EQ(first.at("ceiling_ns"), 500'000);
  EXPECT_EQ(first.at("speed_of_light_ns"), 420'000);
  EXPECT_EQ(first.at("references").at("cudnn_softmax").at("median_ns"), 1'200'000);
  EXPECT_EQ(first.at("percent_of_reference").at("reference"), "cudnn_softmax");
  EXPECT_EQ(first.at("percent_of_reference").at("headline"), 200.0);
}

TEST(BenchRecord, RoundTripsThroughText) {
  const std::string text = pretty_json(to_json(bench_of({row("softmax", "online", 600'000)})));
  Result<boost::json::value> json = parse_json(text, "bench.json");
  ASSERT_TRUE(json.ok());
  Result<Bench> bench = bench_from_json(*json, "bench.json");
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  EXPECT_EQ(pretty_json(to_json(*bench)), text);
}

TEST(BenchRecord, AMissingFieldIsNamed) {
  boost::json::object json = to_json(bench_of({row("softmax", "online", 600'000)}));
  json["rows"].as_array()[0].as_object().erase("median_ns");
  Result<Bench> bench = bench_from_json(json, "bench.json");
  ASSERT_FALSE(bench.ok());
  EXPECT_NE(bench.error().message.find("bench.json"), std::string::npos);
  EXPECT_NE(bench.error().message.find("median_ns"), std::string::npos);
}

TEST(BenchRecord, KeepsEverySampleAndTheResources) {
  BenchRow timed = row("softmax", "online", 3);
  timed.samples_ns = {5, 3, 1};
  timed.references[1].samples_ns = {9, 7};
  timed.references[1].kernel_samples_ns = {4, 2};
  timed.repeated_headline_ns = {8, 6};
  timed.evidence = BadgeEvidence{0.25, {{"shifted", 0.5}}, {{"00ff", "00ff"}}};
  timed.witnesses.resize(2);
  timed.witnesses[1].median_ns = 4;
  timed.witnesses[1].calibration.works = {{"a copy", {.stamps_ns = 7}}};
  timed.resources = {{.name = "softmax", .registers = 40, .spill_load_bytes = 8}};
  const boost::json::object json = to_json(bench_of({timed}));
  const Result<Bench> read = bench_from_json(json, "bench.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->rows[0].samples_ns, timed.samples_ns);
  EXPECT_EQ(read->rows[0].references[1].samples_ns, timed.references[1].samples_ns);
  ASSERT_EQ(read->rows[0].resources.size(), 1u);
  EXPECT_EQ(read->rows[0].resources[0].spill_load_bytes, 8);
  EXPECT_EQ(read->rows[0].references[1].kernel_samples_ns, timed.references[1].kernel_samples_ns);
  EXPECT_EQ(read->rows[0].repeated_headline_ns, timed.repeated_headline_ns);
  EXPECT_EQ(read->rows[0].evidence->stress, timed.evidence->stress);
  EXPECT_EQ(read->rows[0].harness, timed.harness);
  EXPECT_EQ(pretty_json(to_json(*read)), pretty_json(json));
  ASSERT_EQ(read->rows[0].witnesses.size(), 2u);
  EXPECT_EQ(read->rows[0].witnesses[1].median_ns, 4);
  EXPECT_EQ(read->rows[0].witnesses[1].calibration.works.at(0).median.stamps_ns, 7);
}

TEST(BenchRecord, ARowOfAnEvaluationKeepsItsSamples) {
  Evaluation evaluation;
  evaluation.problem = "softmax";
  evaluation.timing = Timing{{4, 2, 6}, 4, 3, 5};
  evaluation.references = {{.id = "cudnn_softmax", .timing = {{8, 9}, 8, 8, 9}}};
  evaluation.resources = {{.name = "softmax", .registers = 40}};
  evaluation.witnesses.resize(2);
  evaluation.ceiling_ns = 7;
  evaluation.speed_of_light_ns = 6;
  const BenchRow made = bench_row(evaluation, {});
  EXPECT_EQ(made.samples_ns, (std::vector<std::int64_t>{4, 2, 6}));
  EXPECT_EQ(made.references[0].samples_ns, (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(made.resources.size(), 1u);
  EXPECT_EQ(made.witnesses.size(), 2u);
  EXPECT_EQ(made.ceiling_ns, 7);
  EXPECT_EQ(made.speed_of_light_ns, 6);
}

TEST(BenchRecord, MergeReplacesAddsAndOrders) {
  Bench recorded = bench_of({row("softmax", "online", 600'000), row("softmax", "slow", 900'000)});
  merge(recorded, bench_of({row("softmax", "online", 550'000), row("matmul_fp32", "tiled", 1)}));
  ASSERT_EQ(recorded.rows.size(), 3u);
  EXPECT_EQ(recorded.rows[0].problem, "matmul_fp32");
  EXPECT_EQ(recorded.rows[1].median_ns, 550'000);
  EXPECT_EQ(recorded.rows[2].kernel, "slow");
}

TEST(BenchRecord, CeilingsAndVersionsAreThoseOfTheRows) {
  BenchRow of_matrices = row("matmul_fp32", "tiled", 1);
  of_matrices.toolchain = {{"cuDNN", "9.14.0"}, {"PyTorch", "2.11.0"}};
  of_matrices.ceilings = {4'280'000'000'000, 790'000'000'000'000};
  BenchRow memory_bound = row("softmax", "online", 600'000);
  memory_bound.toolchain = {{"cuDNN", "9.15.0"}};
  memory_bound.ceilings = {4'000'000'000'000, 0};
  Bench recorded = bench_of({of_matrices});
  merge(recorded, bench_of({memory_bound}));
  EXPECT_EQ(recorded.ceilings.copy_bytes_per_s, 4'280'000'000'000);
  EXPECT_EQ(recorded.ceilings.fp16_flops_per_s, 790'000'000'000'000);
  EXPECT_EQ(recorded.toolchain, (std::map<std::string, std::string>{{"cuDNN", "9.14.0 and 9.15.0"},
                                                                    {"PyTorch", "2.11.0"}}));
  of_matrices.toolchain["cuDNN"] = "9.15.0";
  merge(recorded, bench_of({of_matrices}));
  EXPECT_EQ(recorded.toolchain.at("cuDNN"), "9.15.0")
      << "nothing was measured with 9.14.0 any more";
}

TEST(BenchRecord, OnlyCompleteRowsAreRead) {
  const boost::json::object json = to_json(bench_of({row("softmax", "online", 3)}));
  for (const char* key : {"samples_ns", "harness", "toolchain", "ceilings", "evidence"}) {
    boost::json::object changed = json;
    changed.at("rows").at(0).as_object().erase(key);
    const Result<Bench> read = bench_from_json(changed, "bench.json");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_NE(read.error().message.find("rows[0]: samples, evidence"), std::string::npos)
        << read.error().message;
  }
}

TEST(BenchRecord, OlderSchemasAreNotRead) {
  boost::json::object json = to_json(bench_of({row("softmax", "online", 3)}));
  for (const int schema : {1, 2, 4}) {
    json["schema"] = schema;
    const Result<Bench> read = bench_from_json(json, "bench.json");
    ASSERT_FALSE(read.ok()) << schema;
    EXPECT_EQ(read.error().message,
              "bench.json: schema: expected 3 (remove a file of another schema, and measure again: "
              "`rekernel bench --record`), got " +
                  std::to_string(schema));
  }
}

TEST(BenchRecord, TellsOfItsDeviceAsTheDriverDoes) {
  const DeviceProperties device = device_of(bench_of({}));
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.major, 9);
  EXPECT_EQ(device.minor, 0);
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(device.memory_clock_khz, 3'201'000);
  Bench again;
  note_device(again, {.device = device});
  EXPECT_EQ(again.sm, "9.0");
  EXPECT_EQ(again.memory_bus_bits, 6016);
  Bench odd;
  odd.sm = "a chip";
  EXPECT_EQ(device_of(odd).major, 0);
}

TEST(BenchRecord, FolderIsNamedAfterTheDevice) {
  EXPECT_EQ(bench_path("/p", "NVIDIA H200"), "/p/results/h200/bench.json");
  EXPECT_EQ(bench_path("/p", "NVIDIA L40S"), "/p/results/l40s/bench.json");
  EXPECT_EQ(bench_path("/p", "NVIDIA A100-SXM4-80GB"), "/p/results/a100_sxm4_80gb/bench.json");
  EXPECT_EQ(bench_path("/p", "../../etc"), "/p/results/etc/bench.json");
}

TEST(Report, TableNamesTheReferenceAndTheStrongestLibrary) {
  const Table table = bench_table(bench_of({row("softmax", "online", 600'000)}),
                                  {{"softmax", {111.8, std::nullopt}}});
  ASSERT_EQ(table.rows.size(), 1u);
  const std::string text = to_text(table, {.width = 0});
  EXPECT_NE(text.find("200.0% ± 1.0"), std::string::npos) << text;
  EXPECT_NE(text.find("100.0% (cudnn_other 0.6000)"), std::string::npos) << text;
  EXPECT_NE(text.find("111.8%"), std::string::npos) << text;
  EXPECT_NE(text.find("83.3%"), std::string::npos) << text;  // of the ceiling
  EXPECT_NE(text.find("70.0%"), std::string::npos) << text;  // of the speed of light
  EXPECT_NE(text.find("passed: strict, robust"), std::string::npos) << text;
}

TEST(Report, TheTableOfALongNameFitsATerminal) {
  const Bench bench = bench_of({row("conv2d_relu_maxpool", "space_to_depth_mma_sync", 122'000)});
  const std::string text = to_text(bench_table(bench, {{"conv2d_relu_maxpool", {290.1, 189.0}}}));
  // What others are held against and the badges stay, whatever goes.
  for (const char* part : {"% of ref.", "% strongest", "100.0%", "passed: sr\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Report, RatesAreTheProblemsWorkOverTheKernelsTime) {
  const BenchRow timed = row("softmax", "online", 1'000'000'000);
  const Rates rates = achieved_rates(timed);
  ASSERT_TRUE(rates.bytes_per_s && rates.operations_per_s);
  EXPECT_EQ(*rates.bytes_per_s, 2.0 * 4 * 4096 * 65536);
  BenchRow untimed = timed;
  untimed.median_ns = 0;
  EXPECT_FALSE(achieved_rates(untimed).bytes_per_s);
  EXPECT_FALSE(percent_of_ceiling(untimed));
  EXPECT_FALSE(percent_of_speed_of_light(untimed));
  BenchRow unbounded = timed;
  unbounded.speed_of_light_ns = 0;
  EXPECT_FALSE(percent_of_speed_of_light(unbounded));
  EXPECT_FALSE(achieved_rates(row("no_such_problem", "online", 1)).bytes_per_s);
  const Table page = bench_table(bench_of({timed}), {});
  const Table all = bench_table(bench_of({timed}), {}, BenchColumns::all);
  EXPECT_EQ(page.columns.back().heading, "verdict");
  EXPECT_EQ(all.columns[page.columns.size()].heading, "GB/s");
  EXPECT_EQ(all.rows[0][page.columns.size()], "2");  // GB/s
}

TEST(Report, RemarksNameTheKernelAndTheReference) {
  BenchRow failed = row("softmax", "online", 1);
  failed.message = "12 elements outside the tolerance";
  failed.references.push_back({.id = "cudnn_third", .unavailable = "no cuDNN"});
  EXPECT_EQ(bench_remarks(bench_of({failed})),
            (std::vector<std::string>{"softmax/online: 12 elements outside the tolerance",
                                      "softmax/online: cudnn_layernorm is not available: refused",
                                      "softmax/online: cudnn_third is not available: no cuDNN"}));
}

TEST(Report, TableLeavesTheStrongestLibraryOpenWhereFewerWereTimed) {
  BenchRow few = row("softmax", "found_by_a_search", 600'000);
  std::erase_if(few.references, [](const auto& one) { return one.id == "cudnn_other"; });
  const Table table = bench_table(bench_of({few, row("softmax", "online", 600'000)}), {});
  const auto strongest = [&](std::size_t index) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].heading == "% of strongest library") return table.rows[index][i];
    }
    return std::string("no such column");
  };
  EXPECT_EQ(strongest(0), "–");
  EXPECT_EQ(strongest(1), "100.0% (cudnn_other 0.6000)");
}

TEST(BenchRecord, RefusesPercentagesThatCannotBeWrittenAgain) {
  boost::json::object json = to_json(bench_of({row("softmax", "online", 600'000)}));
  boost::json::object& reference =
      json.at("rows").at(0).at("references").at("cudnn_softmax").as_object();
  for (const char* key : {"percent", "low", "high"}) {
    const boost::json::value good = reference.at(key);
    reference[key] = 1e308;  // times ten: no JSON number
    const Result<Bench> bench = bench_from_json(json, "bench.json");
    ASSERT_FALSE(bench.ok()) << key;
    EXPECT_NE(bench.error().message.find("expected a percentage"), std::string::npos)
        << bench.error().message;
    reference[key] = good;
  }
  reference["low"] = -0.1;
  json.at("rows").at(0).as_object().erase("percent_of_reference");
  EXPECT_TRUE(bench_from_json(json, "bench.json").ok());
}

}  // namespace
}  // namespace rekernel
