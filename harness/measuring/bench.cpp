#include "harness/measuring/bench.h"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <mutex>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/compile/compiler_message.h"
#include "harness/measuring/place.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/terminal/progress.h"
#include "replay/evaluator/evaluation_pool.h"

namespace rekernel {

namespace {

/// What is being measured, told from several threads.
class BenchProgress {
 public:
  explicit BenchProgress(std::size_t total) : total_(total) {}
  void begin(const Candidate& candidate) {
    const std::lock_guard lock(mutex_);
    progress_.show("[" + std::to_string(++begun_) + "/" + std::to_string(total_) + "] " +
                   candidate.problem + "/" + candidate.name + " …");
  }
  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    progress_.show(text);
  }

 private:
  const std::size_t total_;
  std::mutex mutex_;
  std::size_t begun_ = 0;
  Progress progress_;
};

EvaluateOptions bench_evaluation(const Candidate& candidate, const BenchOptions& options,
                                 int device) {
  EvaluateOptions evaluate;
  evaluate.samples = options.samples;
  evaluate.device = device;
  evaluate.references = library_reference_ids(candidate.problem);
  if (options.pytorch) {
    evaluate.external_references =
        pytorch_ids(*find_problem(candidate.problem), options.compiled_pytorch);
    leave_time_for_torch_compile(evaluate);
  }
  return evaluate;
}

/// For a problem that no library solves, where PyTorch is not timed: a reference that says so, so
/// that its row is known to be without a percentage.
Evaluation with_missing_headline(Evaluation evaluation, const BenchOptions& options) {
  if (options.pytorch || !evaluation.timing || !evaluation.references.empty()) return evaluation;
  ReferenceResult missing;
  missing.id = pytorch_ids(*find_problem(evaluation.problem)).front();
  missing.unavailable = options.without_pytorch;
  evaluation.references.push_back(std::move(missing));
  note_judge(evaluation);
  return evaluation;
}

}  // namespace

Result<Bench> run_bench(const std::vector<Candidate>& candidates, const BenchOptions& options) {
  BenchProgress progress(candidates.size());
  const bool strangers =
      std::any_of(candidates.begin(), candidates.end(),
                  [](const Candidate& one) { return is_strangers(*find_problem(one.problem)); });
  std::optional<WhoseText> pytorch;
  if (options.pytorch) pytorch = whose_text(strangers);
  std::vector<MeasuringPlace> places;
  for (const int device : options.devices) {
    places.emplace_back(device, [&](const std::string& holder) { progress.show(holder); });
    if (Result<Ok> begun = places.back().begin(pytorch); !begun) return begun.error();
  }
  std::vector<PoolWorker> workers;
  for (MeasuringPlace& place : places) {
    workers.push_back({"GPU " + std::to_string(place.device()), [&](const Candidate& candidate) {
                         progress.begin(candidate);
                         return place.launcher().evaluate(
                             candidate, bench_evaluation(candidate, options, place.device()));
                       }});
  }
  Bench bench;
  std::map<std::string, std::string> toolchain = toolchain_versions();
  if (!options.pytorch) toolchain.erase("PyTorch");
  PoolTask task;
  for (const Candidate& candidate : candidates) {
    task.candidates.push_back(&candidate);
    task.ids.push_back(candidate.problem + "/" + candidate.name);
  }
  task.prepare = [](std::size_t) { return std::nullopt; };
  Result<Ok> taken = Ok{};
  task.settle = [&](std::size_t, const EvaluationReport& report) {
    note_device(bench, report);
    bench.rows.push_back(bench_row(with_missing_headline(report.evaluation, options), toolchain));
    // A candidate that does not compile may come before any that names the GPU.
    if (options.arrived && !bench.device_name.empty()) taken = options.arrived(bench);
    return taken.ok();
  };
  PoolOptions pool;
  pool.say = [&](const std::string& text) {
    progress.show("");
    std::cerr << wrapped(text, page_columns, 2) << std::endl;
  };
  std::vector<std::size_t> unsettled;
  const auto interruption =
      EvaluationPool(std::move(workers), std::move(pool)).run(task, unsettled);
  if (!taken) return taken.error();
  if (interruption) return Error{interruption->message};
  Bench ordered;
  merge(ordered, bench);
  return ordered;
}

Result<std::filesystem::path> record_bench(const std::filesystem::path& root, const Bench& bench,
                                           const char* file) {
  const std::filesystem::path path = bench_path(root, bench.device_name).replace_filename(file);
  Bench recorded;
  if (std::filesystem::exists(path)) {
    // What was measured is kept in any case; who reads the record refuses what contradicts itself.
    Result<Bench> old = read_bench(path);
    if (!old) return old.error();
    recorded = std::move(*old);
    // Signatures and bounds are of the device that is there.
    if (const auto found = unlike_device_before(recorded, bench); !found.empty()) {
      return Error{path.string() +
                   ": recorded on another device than this one: " + joined(found, "; ")};
    }
  }
  merge(recorded, bench);
  std::filesystem::create_directories(path.parent_path());
  Result<Ok> written = write_file_atomically(path, pretty_json(to_json(recorded)));
  if (!written) return written.error();
  return path;
}

}  // namespace rekernel
