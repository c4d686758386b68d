// What judges on the host: statistics of timed samples, and the float64 truth of small sizes.

#include <benchmark/benchmark.h>

#include <random>

#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "ops/inputs.h"

namespace rekernel {
namespace {

Problem small(const char* id, const Sizes& sizes) {
  return problem_at(*find_problem(id), sizes).value();
}

std::vector<std::int64_t> made_up_samples(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    samples.push_back(1'000'000 + static_cast<std::int64_t>(random() % 20'000));
  }
  return samples;
}

void median_and_quartiles(benchmark::State& state) {
  const std::vector<std::int64_t> samples = made_up_samples(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(summarise(samples));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(median_and_quartiles)->Arg(60)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void percent_with_interval(benchmark::State& state) {
  const std::vector<std::int64_t> reference = made_up_samples(state.range(0), 1);
  const std::vector<std::int64_t> kernel = made_up_samples(state.range(0), 2);
  for (auto _ : state) benchmark::DoNotOptimize(percent_of_reference(reference, kernel));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(percent_with_interval)->Arg(60)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void inputs_on_the_host(benchmark::State& state) {
  const Problem problem = small("softmax", {{"rows", 64}, {"columns", 256}});
  for (auto _ : state) benchmark::DoNotOptimize(host_inputs(problem, 1));
  state.SetItemsProcessed(state.iterations() * problem.outputs().front()->elements());
}
BENCHMARK(inputs_on_the_host)->Unit(benchmark::kMicrosecond);

void host_oracle(benchmark::State& state, const Problem& problem) {
  const HostInputs inputs = host_inputs(problem, 1);
  for (auto _ : state) benchmark::DoNotOptimize(problem.host_oracle(inputs));
  state.SetItemsProcessed(state.iterations() * problem.outputs().front()->elements());
}
BENCHMARK_CAPTURE(host_oracle, softmax_64_256, small("softmax", {{"rows", 64}, {"columns", 256}}))
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(host_oracle, matmul_64_64_64,
                  small("matmul_fp32", {{"m", 64}, {"n", 64}, {"k", 64}}))
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rekernel
