#include "harness/evaluation/time.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <exception>
#include <ostream>

namespace rekernel {

namespace {

constexpr double nanoseconds_per_second = 1e9;

/// Keeps every repetition's time instead of printing.
class SampleCollector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      samples_[run.run_name.function_name].push_back(
          std::llround(run.real_accumulated_time * nanoseconds_per_second));
    }
  }

  std::map<std::string, std::vector<std::int64_t>> take() { return std::move(samples_); }

 private:
  std::map<std::string, std::vector<std::int64_t>> samples_;
};

void initialise_library() {
  static const bool done = [] {
    std::string program = "rekernel";
    std::string interleaving = "--benchmark_enable_random_interleaving=true";
    char* arguments[] = {program.data(), interleaving.data(), nullptr};
    int count = 2;
    benchmark::Initialize(&count, arguments);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> measure_interleaved(
    const std::vector<TimedSubject>& subjects) {
  initialise_library();
  benchmark::ClearRegisteredBenchmarks();
  std::exception_ptr failure;
  for (const TimedSubject& subject : subjects) {
    benchmark::RegisterBenchmark(
        subject.name.c_str(),
        [&subject, &failure](benchmark::State& state) {
          for (auto _ : state) {
            static_cast<void>(_);
            std::int64_t elapsed = 0;
            // Nothing may be thrown through the library, and nothing more
            // is launched once a sample has failed.
            if (!failure) {
              try {
                elapsed = subject.sample();
              } catch (...) {
                failure = std::current_exception();
              }
            }
            state.SetIterationTime(static_cast<double>(elapsed) / nanoseconds_per_second);
          }
        })
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(subject.samples);
  }
  SampleCollector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::ClearRegisteredBenchmarks();
  if (failure) std::rethrow_exception(failure);
  return collector.take();
}

}  // namespace rekernel
