// What a search does between replies: its trajectory, its prompts, its replay.

#include <benchmark/benchmark.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/candidate/code.h"
#include "replay/playback/replayer.h"
#include "replay/search/prompt.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/trajectory.h"
#include "tests/benchmarks/committed.h"

namespace rekernel {
namespace {

std::filesystem::path recorded_search() { return committed("trajectories/softmax.jsonl"); }

Trajectory open_recorded() {
  return value_of(Trajectory::open(recorded_search(), Trajectory::Access::read));
}

boost::json::object first_event() {
  Trajectory trajectory = open_recorded();
  // In memory of its own: an event's goes with the trajectory.
  return {*value_of(trajectory.peek()), boost::json::storage_ptr()};
}

void replay_a_search(benchmark::State& state) {
  std::size_t events = 0;
  for (auto _ : state) {
    const Replay replay = replay_exactly(recorded_search());
    if (replay.interruption) throw std::runtime_error(replay.interruption->message);
    events += replay.search.events;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}
BENCHMARK(replay_a_search)->Unit(benchmark::kMillisecond);

void parse_trajectory(benchmark::State& state) {
  std::size_t events = 0;
  for (auto _ : state) {
    Trajectory trajectory = open_recorded();
    while (value_of(trajectory.peek())) {
      if (!trajectory.skip()) throw std::runtime_error("an event cannot be passed");
      ++events;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() *
                                                    std::filesystem::file_size(recorded_search())));
}
BENCHMARK(parse_trajectory)->Unit(benchmark::kMillisecond);

void chain_an_event(benchmark::State& state) {
  const boost::json::object event = first_event();
  std::string chain = chain_start();
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string canonical = canonical_json(event);
    chain = next_chain(chain, canonical);
    bytes += canonical.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(chain_an_event)->Unit(benchmark::kMicrosecond);

/// A round's prompt after `range(0)` candidates, half of which failed with words of the compiler.
void make_prompt(benchmark::State& state) {
  const Header header = value_of(header_from_json(first_event(), "softmax"));
  const std::filesystem::path folder = value_of(candidate_directories(committed(""))).front();
  const std::string source = value_of(read_file(folder / "kernel.cu"));
  PromptHistory history(most_prompt_bytes(header.settings));
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const bool passed = i % 2 == 0;
    history.add({"r" + std::to_string(i) + ".i1.b1", "an idea", passed,
                 passed ? "passed: 512.3 us" : "compile_failed",
                 passed ? "" : std::string(2000, 'e')});
  }
  PromptParts parts;
  for (const char* id : {"r1.i1.b1", "r2.i1.b1"})
    parts.survivors.push_back({id, "passed", "{}", source});
  parts.history = &history;
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes += PromptWriter(header, parts).kernel({"title", "What to do."}, 1).size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(make_prompt)->Arg(10)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rekernel
