#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/cli/command.h"
#include "harness/cli/references.h"
#include "harness/compile.h"
#include "harness/cuda.h"
#include "harness/files.h"
#include "replay/device_evaluator.h"
#include "replay/metrics.h"
#include "replay/replay_report.h"
#include "replay/replayer.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

int exit_status_of(const Interruption& interruption) {
  bad_input({interruption.message});
  return interruption.kind == Interruption::Kind::mismatch ? exit_verdict_failed : exit_bad_input;
}

/// What this machine's first GPU runs; without one, what the search wrote code for.
std::string target_here(const Header& header) {
  if (!load_driver()) return header.device.target;
  const Result<Device> device = Device::open(0);
  if (!device) return header.device.target;
  return Compiler::target_for_device(device->properties().major, device->properties().minor);
}

/// Judges every candidate again, on this machine's GPUs. Those that need another GPU fail to
/// launch.
std::optional<Interruption> measure(const ReplayedSearch& search, Remeasurement& result) {
  DeviceEvaluatorOptions options;
  options.evaluate.references = search.header.settings.references;
  options.target = target_here(search.header);
  options.device_count = device_count;
  DeviceEvaluator evaluator(std::move(options));
  const auto total = std::count_if(search.candidates.begin(), search.candidates.end(),
                                   [](const auto& one) { return one.candidate.has_value(); });
  Progress progress;
  return measure_again(
      search, evaluator,
      [&](std::size_t done) {
        progress.show("measured " + std::to_string(done) + " of " + std::to_string(total) +
                      " candidates …");
      },
      result);
}

Result<Ok> write_report(const fs::path& folder, const ReplayedSearch& search,
                        const Remeasurement* today) {
  const std::string stem = search.header.name + (today ? ".measured" : ".replay");
  Result<Ok> written =
      write_file_atomically(folder / (stem + ".json"), pretty_json(replay_json(search, today)));
  if (!written) return written;
  return write_file_atomically(folder / (stem + ".md"), replay_markdown(search, today));
}

void print_report(const ReplayedSearch& search, const Remeasurement* today) {
  std::cout << search.header.name << ": " << search.header.problem << " for "
            << search.header.device.name << "; " << search.events
            << " events reproduced byte for byte\n"
            << to_text(round_table(search, today)) << "\n"
            << metrics_text(search);
  if (today) {
    std::cout << "\n"
              << to_text(remeasured_table(search, *today)) << "\n"
              << changed_choices_text(*today);
  }
}

/// Writes one candidate as a folder of its own.
Result<fs::path> extract(const ReplayedSearch& search, const std::string& id,
                         const fs::path& parent) {
  const auto found = std::find_if(search.candidates.begin(), search.candidates.end(),
                                  [&](const auto& one) { return one.id == id; });
  if (found == search.candidates.end() || !found->candidate) {
    return Error{search.header.name + ": no candidate \"" + id + "\""};
  }
  const Candidate& candidate = *found->candidate;
  const fs::path folder = parent / candidate.name;
  if (fs::exists(folder)) return Error{folder.string() + " exists already"};
  Result<Ok> written = write_file_atomically(folder / "kernel.cu", candidate.program.source);
  if (written) written = write_file_atomically(folder / "kernel.json", candidate_json(candidate));
  if (!written) return written.error();
  return folder;
}

/// The share of problems for which a search found something correct and fast.
void print_fast_p(const std::vector<ReplayedSearch>& searches) {
  std::vector<TaskResult> tasks;
  for (const ReplayedSearch& search : searches) {
    const SearchMetrics metrics = search_metrics(search);
    tasks.push_back({metrics.correct > 0, static_cast<double>(metrics.best_permille) / 1000.0});
  }
  std::cout << "fast_p over " << tasks.size() << " searches:";
  for (const double p : {0.0, 1.0, 1.5, 2.0}) {
    std::cout << " p=" << p << ": " << fast_p(tasks, p);
  }
  std::cout << "\n";
}

/// One trajectory: replay, measure, report. The exit status, and the search in `kept`.
int replay_one(const ParsedArguments& parsed, const fs::path& path,
               std::vector<ReplayedSearch>& kept, boost::json::array& reports) {
  const bool measuring = parsed.flag("measure");
  const bool extracting = parsed.has("extract");
  Replay replay =
      replay_exactly(path, measuring || extracting ? KeepCandidates::yes : KeepCandidates::no);
  if (replay.interruption) return exit_status_of(*replay.interruption);
  if (extracting) {
    const Result<fs::path> folder =
        extract(replay.search, parsed.get<std::string>("extract"), parsed.get<std::string>("to"));
    if (!folder) return bad_input(folder.error());
    std::cout << "wrote " << folder->string() << "\n";
    return exit_good;
  }
  Remeasurement today;
  if (measuring) {
    if (auto interruption = measure(replay.search, today)) return exit_status_of(*interruption);
  }
  const Remeasurement* shown = measuring ? &today : nullptr;
  if (parsed.has("output")) {
    Result<Ok> written = write_report(parsed.get<std::string>("output"), replay.search, shown);
    if (!written) return bad_input(written.error());
  }
  if (parsed.flag("json")) {
    reports.push_back(replay_json(replay.search, shown));
  } else {
    print_report(replay.search, shown);
  }
  kept.push_back(std::move(replay.search));
  return exit_good;
}

}  // namespace

int replay_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("trajectory", po::value<std::vector<std::string>>()->composing(),
                        "name (of trajectories/NAME.jsonl) or file; all by default")(
      "measure", po::bool_switch(), "compile, check and time every candidate again on this GPU")(
      "output", po::value<std::string>(), "folder for the report as JSON and Markdown")(
      "json", po::bool_switch(), "print the reports as a JSON list")(
      "extract", po::value<std::string>(),
      "write this candidate (r4.i2.b1) as a folder, and no more")(
      "to", po::value<std::string>()->default_value("."), "folder for --extract");
  po::positional_options_description positional;
  positional.add("trajectory", -1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel replay [NAME_OR_FILE…] [options]",
                      "rekernel replay conv2d --measure --output results", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;

  std::vector<fs::path> paths;
  if (parsed.has("trajectory")) {
    for (const std::string& name : parsed.get<std::vector<std::string>>("trajectory")) {
      paths.push_back(trajectory_path(project_root(), name));
    }
  } else {
    paths = recorded_trajectories(project_root());
  }
  if (paths.empty()) return bad_input({"no trajectory is recorded yet"});
  if (parsed.has("extract") && paths.size() != 1) {
    return bad_input({"--extract: expected one trajectory"});
  }
  int status = exit_good;
  std::vector<ReplayedSearch> searches;
  boost::json::array reports;
  for (const fs::path& path : paths) {
    status = std::max(status, replay_one(parsed, path, searches, reports));
  }
  if (parsed.flag("json")) std::cout << pretty_json(reports);
  if (searches.size() > 1 && !parsed.flag("json")) print_fast_p(searches);
  return status;
}

}  // namespace rekernel
