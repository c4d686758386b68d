#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/replay_page.h"
#include "harness/compile/compile.h"
#include "harness/project/extract.h"
#include "harness/project/root.h"
#include "harness/project/unfinished_searches.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/pager.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/suggestion.h"
#include "harness/terminal/tables.h"
#include "replay/playback/replayer.h"
#include "replay/report/metrics.h"
#include "replay/report/replay_report.h"
#include "replay/report/walk.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

int exit_status_of(const Interruption& interruption) {
  bad_input({interruption.message});
  return interruption.kind == Interruption::Kind::mismatch ? exit_verdict_failed : exit_bad_input;
}

/// What the first GPU of those runs; without one, what the search wrote code for.
std::string target_here(const std::vector<VisibleGpu>& gpus, const Header& header) {
  if (gpus.empty()) return header.device.target;
  return Compiler::target_for_device(gpus.front().major, gpus.front().minor);
}

/// Judges every candidate again, on this machine's GPUs. Those that need another GPU fail to
/// launch.
std::optional<Interruption> measure(const ParsedArguments& parsed, const ReplayedSearch& search,
                                    Remeasurement& result) {
  std::vector<VisibleGpu> gpus;
  if (const auto visible = visible_gpus()) {
    auto chosen = choose_gpus(parsed.get<std::string>("gpus"), *visible, parsed.flag("mixed-gpus"));
    if (!chosen) return Interruption{Interruption::Kind::failed, chosen.error().message};
    gpus = std::move(*chosen);
  }
  Progress progress;
  const auto say = [&progress](const std::string& text) {
    progress.show("");
    std::cerr << wrapped(text, page_columns, 2) << std::endl;
  };
  PoolEvaluator evaluator(local_evaluator(gpus, search.header.settings.references,
                                          search.header.problem, target_here(gpus, search.header),
                                          say));
  const auto total = static_cast<std::size_t>(
      std::count_if(search.candidates.begin(), search.candidates.end(),
                    [](const auto& one) { return one.candidate.has_value(); }));
  progress.step(0, total, "candidates measured");
  return measure_again(
      search, evaluator,
      [&](std::size_t done) { progress.step(done, total, "candidates measured"); }, result);
}

Result<Ok> write_report(const fs::path& folder, const ReplayedSearch& search,
                        const Remeasurement* today) {
  const std::string stem = search.header.name + (today ? ".measured" : ".replay");
  Result<Ok> written =
      write_file_atomically(folder / (stem + ".json"), pretty_json(replay_json(search, today)));
  if (!written) return written;
  return write_file_atomically(folder / (stem + ".md"), replay_markdown(search, today));
}

/// What a user calls the trajectory.
std::string name_of(const fs::path& path) {
  const std::string stem = path.stem().string();
  return path == trajectory_path(project_root(), stem) ? stem : path.string();
}

/// `named`: what the user calls the trajectory.
void print_report(const ReplayedSearch& search, const std::string& named,
                  const Remeasurement* today, const TableFormat& format) {
  if (format.csv) {
    std::cout << to_csv(today ? remeasured_table(search, *today) : round_table(search));
    return;
  }
  std::cout << search.header.name << ": " << search.header.problem << " for "
            << search.header.device.name << "\n"
            << search.events << " events reproduced byte for byte\n"
            << format.shown(round_table(search, today)) << "\n"
            << metrics_text(search);
  if (today) {
    std::cout << "\n"
              << format.shown(remeasured_table(search, *today)) << "\n"
              << changed_choices_text(*today);
  }
  std::cout << "each round's ideas and code: rekernel replay " << named << " --walk\n";
}

/// Candidate by candidate; the options that only mean something then ask for it too.
bool walks(const ParsedArguments& parsed) {
  return parsed.flag("walk") || parsed.flag("code") || parsed.flag("markdown") ||
         parsed.has("round") || parsed.has("candidate");
}

/// A published run is there to be watched: asked for by its name, it is shown with its code.
bool to_be_watched(const ParsedArguments& parsed, const ReplayedSearch& search) {
  const bool asked_for =
      parsed.has("trajectory") && parsed.get<std::vector<std::string>>("trajectory").size() == 1;
  return asked_for && search.header.published && !parsed.flag("table") && !parsed.flag("json") &&
         !parsed.flag("csv");
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

int extract(const ParsedArguments& parsed, const ReplayedSearch& search) {
  ExtractOptions options;
  options.id = parsed.get<std::string>("extract");
  if (parsed.has("name")) options.name = parsed.get<std::string>("name");
  if (parsed.has("to")) options.to = parsed.get<std::string>("to");
  options.record = parsed.flag("record");
  const Result<std::string> told = extract_candidate(search, options);
  if (!told) return bad_input(told.error());
  std::cout << *told;
  return exit_good;
}

Result<Ok> check_candidates(const ReplayedSearch& search, const std::vector<std::string>& wanted) {
  std::vector<std::string> ids;
  for (const ReplayedCandidate& one : search.candidates) ids.push_back(one.id);
  for (const std::string& id : wanted) {
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
    return Error{search.header.name + ": no candidate '" + one_line(id, 64) + "'" +
                 did_you_mean(id, ids) + "; --walk shows them all"};
  }
  return Ok{};
}

int print_walk(const ParsedArguments& parsed, const ReplayedSearch& search,
               const Remeasurement* today) {
  WalkOptions options;
  if (parsed.has("round")) options.round = parsed.get<int>("round");
  options.whole_code = parsed.flag("code");
  options.markdown = parsed.flag("markdown");
  if (parsed.has("candidate")) {
    options.candidates = parsed.get<std::vector<std::string>>("candidate");
    if (Result<Ok> known = check_candidates(search, options.candidates); !known) {
      return bad_input(known.error());
    }
  }
  const Result<std::string> text = walk(search, options, today);
  if (!text) return bad_input(text.error());
  if (walks(parsed)) {
    show_in_pager(*text);
  } else {
    std::cout << *text;
  }
  return exit_good;
}

/// One trajectory: replay, measure, report. The exit status, and the search in `kept`. What the
/// progress shows goes before anything is printed.
int replay_one(const ParsedArguments& parsed, const fs::path& path,
               std::vector<ReplayedSearch>& kept, boost::json::array& reports, Progress& progress) {
  const bool measuring = parsed.flag("measure");
  const bool tables_alone = !parsed.has("trajectory") || parsed.flag("table");
  const bool with_code = measuring || walks(parsed) || !tables_alone;
  // A walk shows what there is; the other reports are of whole searches.
  Replay replay = replay_exactly(path, with_code ? KeepCandidates::yes : KeepCandidates::no,
                                 walks(parsed) ? Unfinished::accepted : Unfinished::refused);
  progress.show("");
  if (replay.interruption) return exit_status_of(*replay.interruption);
  if (parsed.has("extract")) return extract(parsed, replay.search);
  Remeasurement today;
  if (measuring) {
    if (auto interruption = measure(parsed, replay.search, today))
      return exit_status_of(*interruption);
  }
  const Remeasurement* shown = measuring ? &today : nullptr;
  if (parsed.has("output")) {
    Result<Ok> written = write_report(parsed.get<std::string>("output"), replay.search, shown);
    if (!written) return bad_input(written.error());
  }
  if (walks(parsed)) return print_walk(parsed, replay.search, shown);
  if (parsed.flag("json")) {
    reports.push_back(replay_json(replay.search, shown));
  } else {
    if (to_be_watched(parsed, replay.search)) {
      if (const int status = print_walk(parsed, replay.search, shown)) return status;
      std::cout << "\n";
    }
    print_report(replay.search, name_of(path), shown, table_format(parsed));
  }
  kept.push_back(std::move(replay.search));
  return exit_good;
}

/// Options that only mean something beside others.
Result<Ok> check_combination(const ParsedArguments& parsed) {
  const bool other_output =
      parsed.flag("json") || parsed.flag("table") || parsed.flag("csv") || parsed.has("extract");
  if (walks(parsed) && other_output) {
    return Error{
        "--walk, --round, --candidate, --code, --markdown: expected none of --json, --table, --csv "
        "and "
        "--extract with them"};
  }
  if (parsed.has("round") && parsed.has("candidate")) {
    return Error{"--round and --candidate: expected one of them"};
  }
  if (parsed.flag("table") && parsed.has("extract")) {
    return Error{"--table: expected no --extract with it"};
  }
  const bool naming = parsed.has("name") || parsed.has("to") || parsed.flag("record");
  if (naming && !parsed.has("extract")) {
    return Error{"--name, --to and --record: expected --extract with them"};
  }
  return Ok{};
}

}  // namespace

int replay_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, replay_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (Result<Ok> checked = check_combination(parsed); !checked) return bad_input(checked.error());

  std::vector<fs::path> paths;
  if (parsed.has("trajectory")) {
    for (const std::string& name : parsed.get<std::vector<std::string>>("trajectory")) {
      paths.push_back(trajectory_path(project_root(), name));
      std::error_code ignored;
      if (fs::exists(paths.back(), ignored)) continue;
      return bad_input({paths.back().string() + ": no such search" +
                        did_you_mean(name, search_names(project_root()))});
    }
  } else {
    std::vector<std::string> left_out;
    paths = finished_trajectories(project_root(), left_out);
    for (const std::string& line : left_out) std::cerr << line << "\n";
  }
  if (paths.empty()) return bad_input({"no finished trajectory is recorded yet"});
  if ((parsed.has("extract") || parsed.flag("csv")) && paths.size() != 1) {
    return bad_input({"--extract and --csv: expected one trajectory"});
  }
  int status = exit_good;
  std::vector<ReplayedSearch> searches;
  boost::json::array reports;
  Progress progress;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    progress.step(i, paths.size(), "replaying");
    status = std::max(status, replay_one(parsed, paths[i], searches, reports, progress));
  }
  if (parsed.flag("json")) std::cout << pretty_json(reports);
  if (searches.size() > 1 && !parsed.flag("json") && !parsed.flag("csv")) print_fast_p(searches);
  return status;
}

}  // namespace rekernel
