#include "harness/cli/bench.h"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <mutex>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/references.h"
#include "harness/compile/compiler_message.h"
#include "harness/evaluation/launcher.h"
#include "harness/problems/catalog.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "reference/pytorch.h"
#include "replay/evaluation_pool.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// Whether a folder is what one of the names asks for: a problem, or a kernel of it.
bool is_asked_for(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  const std::string problem = folder.parent_path().filename().string();
  const std::string kernel = problem + "/" + folder.filename().string();
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == problem || name == kernel;
         });
}

Result<Ok> check_names(const std::vector<std::filesystem::path>& folders,
                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool found = std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
      return is_asked_for(folder, {name});
    });
    if (found) continue;
    if (name.find('/') != std::string::npos) {
      return Error{"unknown kernel '" + name +
                   "': expected PROBLEM/NAME of a folder in generated/"};
    }
    if (find_problem(name)) {
      return Error{"no kernel of " + name + " is in generated/: `rekernel new " + name +
                   " NAME` makes one"};
    }
    return Error{unknown_problem(name).message + ", and kernels are written PROBLEM/NAME"};
  }
  return Ok{};
}

}  // namespace

Result<std::vector<Candidate>> committed_candidates(const std::filesystem::path& root,
                                                    const std::vector<std::string>& names) {
  Result<std::vector<std::filesystem::path>> folders = candidate_directories(root);
  if (!folders) return folders.error();
  if (Result<Ok> known = check_names(*folders, names); !known) return known.error();
  std::vector<Candidate> candidates;
  for (const std::filesystem::path& folder : *folders) {
    if (!is_asked_for(folder, names)) continue;
    Result<Candidate> candidate = load_candidate(folder);
    if (!candidate) return candidate.error();
    candidates.push_back(std::move(*candidate));
  }
  return candidates;
}

namespace {

/// A GPU of the bench, with a PyTorch of its own where that is timed too.
struct BenchPlace {
  int device = 0;
  std::unique_ptr<PytorchProcess> pytorch;
  std::unique_ptr<LocalLauncher> launcher;
};

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
    evaluate.external_references = pytorch_ids(*find_problem(candidate.problem));
    evaluate.run_deadline = pytorch_run_deadline;
  }
  return evaluate;
}

/// Of a problem that no library solves, where PyTorch is not timed: a reference that says so, so
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
  std::vector<BenchPlace> places;
  for (const int device : options.devices) {
    BenchPlace& place = places.emplace_back(BenchPlace{device, nullptr, nullptr});
    if (options.pytorch) {
      Result<std::unique_ptr<PytorchProcess>> spawned = PytorchProcess::spawn();
      if (!spawned) return spawned.error();
      place.pytorch = std::move(*spawned);
    }
    place.launcher = std::make_unique<LocalLauncher>(
        place.pytorch.get(), [&](const std::string& holder) { progress.show(holder); });
  }
  std::vector<EvaluationWorker> workers;
  for (const BenchPlace& place : places) {
    workers.push_back({"GPU " + std::to_string(place.device), [&](const Candidate& candidate) {
                         progress.begin(candidate);
                         return place.launcher->evaluate(
                             candidate, bench_evaluation(candidate, options, place.device));
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

Result<std::filesystem::path> record_bench(const std::filesystem::path& root, const Bench& bench) {
  const std::filesystem::path path = bench_path(root, bench.device_name);
  Bench recorded;
  if (std::filesystem::exists(path)) {
    // What was measured is kept in any case; who reads the record refuses what contradicts itself.
    Result<Bench> old = read_bench(path);
    if (!old) return old.error();
    recorded = std::move(*old);
    // Signatures and bounds are of the device that is there.
    if (const auto found = unlike_device_before(recorded, bench); !found.empty()) {
      return Error{path.string() +
                   ": recorded of another device than this one: " + joined(found, "; ")};
    }
  }
  merge(recorded, bench);
  std::filesystem::create_directories(path.parent_path());
  Result<Ok> written = write_file_atomically(path, pretty_json(to_json(recorded)));
  if (!written) return written.error();
  return path;
}

std::string bench_text(const Bench& bench, const std::filesystem::path& root) {
  Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  std::string text = to_text(
      bench_table(bench, published ? *published : std::map<std::string, PublishedFigures>{}));
  text += "\n" + bench_caption(bench) + "\n";
  if (!published) text += "published figures: " + published.error().message + "\n";
  for (const BenchRow& row : bench.rows) {
    const std::string name = row.problem + "/" + row.kernel + ": ";
    if (!row.message.empty()) text += name + headline(row.message) + "\n";
    for (const RecordedReference& reference : row.references) {
      if (!reference.unavailable.empty()) {
        text += name + reference.id + " is not available: " + reference.unavailable + "\n";
      }
    }
  }
  return text;
}

int bench_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("problem", po::value<std::vector<std::string>>(),
                        "problems to bench, or kernels as PROBLEM/NAME; all by default")(
      "samples", po::value<int>()->default_value(60), "timed samples each, 10 to 10000")(
      "pytorch", po::value<std::string>()->default_value("auto"),
      "time PyTorch too: auto (when python3 can import torch), on, off")(
      "record", po::bool_switch(), "merge the rows into results/<gpu>/bench.json")(
      "json", po::bool_switch(), "print the record as JSON");
  add_device_options(options);
  po::positional_options_description positional;
  positional.add("problem", -1);
  const ParsedArguments parsed = parse_arguments(
      arguments, "rekernel bench [PROBLEM|PROBLEM/NAME…] [options]",
      "rekernel bench softmax matmul_fp32/promoted_sums --record", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }

  BenchOptions bench_options;
  bench_options.samples = parsed.get<int>("samples");
  if (bench_options.samples < 10 || bench_options.samples > 10000) {
    return bad_input({"--samples: expected 10 to 10000"});
  }
  const std::string pytorch = parsed.get<std::string>("pytorch");
  if (pytorch != "auto" && pytorch != "on" && pytorch != "off") {
    return bad_input({"--pytorch " + pytorch + ": expected auto, on or off"});
  }

  const std::filesystem::path root = project_root();
  const std::vector<std::string> problems = parsed.has("problem")
                                                ? parsed.get<std::vector<std::string>>("problem")
                                                : std::vector<std::string>{};
  Result<std::vector<Candidate>> candidates = committed_candidates(root, problems);
  if (!candidates) return bad_input(candidates.error());
  Result<std::vector<int>> devices = chosen_devices(parsed);
  if (!devices) return bad_input(devices.error());
  bench_options.devices = std::move(*devices);
  bench_options.pytorch = pytorch != "off" && pytorch_is_installed();
  if (pytorch == "on" && !bench_options.pytorch) {
    return bad_input({"--pytorch on: python3 here cannot import torch"});
  }
  bench_options.without_pytorch =
      pytorch == "off" ? "--pytorch off" : "python3 here cannot import torch";

  std::filesystem::path recorded;
  if (parsed.flag("record")) {  // row by row: what is measured stays, whatever ends the run
    bench_options.arrived = [&](const Bench& so_far) -> Result<Ok> {
      Result<std::filesystem::path> path = record_bench(root, so_far);
      if (!path) return path.error();
      recorded = std::move(*path);
      return Ok{};
    };
  }
  Result<Bench> bench = run_bench(*candidates, bench_options);
  if (!bench) return bad_input(bench.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*bench));
  } else {
    std::cout << bench_text(*bench, root);
  }
  if (!recorded.empty()) std::cerr << "recorded in " << recorded.string() << "\n";
  const bool all_passed = std::all_of(bench->rows.begin(), bench->rows.end(),
                                      [](const auto& row) { return row.status == Status::passed; });
  return all_passed ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
