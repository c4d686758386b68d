// Reading and comparing what is recorded: JSON, plans, results.

#include <benchmark/benchmark.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/candidate/code.h"
#include "harness/records/contradictions.h"
#include "harness/records/record.h"
#include "harness/records/standings.h"
#include "harness/report/same_picture.h"
#include "tests/benchmarks/committed.h"

namespace rekernel {
namespace {

const std::string& bench_text() {
  static const std::string text = value_of(read_file(committed("results/h200/bench.json")));
  return text;
}

const boost::json::value& bench_json() {
  static const boost::json::value json = value_of(parse_json(bench_text(), "bench.json"));
  return json;
}

const Bench& bench() {
  static const Bench read = value_of(bench_from_json(bench_json(), "bench.json"));
  return read;
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

void parse_json_of_results(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(bench_text(), "bench.json"));
  count_bytes(state, bench_text().size());
}
BENCHMARK(parse_json_of_results)->Unit(benchmark::kMicrosecond);

void write_json_of_results(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(pretty_json(bench_json()));
  count_bytes(state, bench_text().size());
}
BENCHMARK(write_json_of_results)->Unit(benchmark::kMicrosecond);

void read_results(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(bench_from_json(bench_json(), "bench.json"));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * bench().rows.size()));
}
BENCHMARK(read_results)->Unit(benchmark::kMicrosecond);

void examine_results(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(contradictions(bench(), "bench.json"));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * bench().rows.size()));
}
BENCHMARK(examine_results)->Unit(benchmark::kMicrosecond);

void compare_two_rows(benchmark::State& state) {
  const std::vector<Standing> ranks = standings(bench(), "softmax", {});
  if (ranks.size() < 2) throw std::runtime_error("two kernels of one problem are expected");
  for (auto _ : state) {
    benchmark::DoNotOptimize(difference_text(*ranks[0].row, *ranks[1].row));
  }
}
BENCHMARK(compare_two_rows)->Unit(benchmark::kMicrosecond);

void compare_pictures(benchmark::State& state) {
  const std::string picture = value_of(read_file(committed("results/pictures/reference-h200.svg")));
  for (auto _ : state) benchmark::DoNotOptimize(is_same_picture(picture, picture));
  count_bytes(state, picture.size());
}
BENCHMARK(compare_pictures)->Unit(benchmark::kMicrosecond);

void read_plan(benchmark::State& state) {
  const std::filesystem::path folder = value_of(candidate_directories(committed(""))).front();
  const std::string plan = value_of(read_file(folder / "kernel.json"));
  const std::string source = value_of(read_file(folder / "kernel.cu"));
  for (auto _ : state) benchmark::DoNotOptimize(value_of(parse_candidate(plan, source, "plan")));
  count_bytes(state, plan.size() + source.size());
}
BENCHMARK(read_plan)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rekernel
