#include <algorithm>
#include <iostream>

#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/results.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/recorded.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/report/citation.h"
#include "harness/report/leaderboard.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// The ranks among all rows; of these, the rows that the filters take.
Table best_table(const PlacedBenches& benches, const std::vector<Candidate>& candidates,
                 const Filters& filters) {
  const Staleness staleness = staleness_by(candidates);
  Table table = standings_table({});
  table.columns.insert(table.columns.begin(), {{.heading = "device"}, {.heading = "problem"}});
  for (const auto& [path, bench] : benches) {
    for (const Problem& problem : catalog()) {
      if (!filters.take(problem)) continue;
      std::vector<Standing> places = standings(bench, problem.id, staleness);
      std::erase_if(places, [&](const Standing& one) { return !filters.take(*one.row); });
      for (std::vector<std::string>& row : standings_table(places).rows) {
        row.insert(row.begin(), {bench.device_name, problem.id});
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

/// A bench file, or the one recorded for a device: "h200".
Result<Bench> bench_named(const fs::path& root, const std::string& name) {
  const fs::path recorded = root / "results" / name / "bench.json";
  std::error_code ignored;
  const bool folder = name.find('/') == std::string::npos && fs::exists(recorded, ignored);
  return load_record(root, folder ? recorded : fs::path(name));
}

}  // namespace

int show_best(const fs::path& root, const std::vector<std::string>& problems,
              const ParsedArguments& parsed) {
  for (const std::string& id : problems) {
    if (const auto known = known_problem(id); !known) return bad_input(known.error());
  }
  Result<Filters> filters = chosen_filters(parsed);
  if (!filters) return bad_input(filters.error());
  filters->problems.insert(filters->problems.end(), problems.begin(), problems.end());
  if (parsed.flag("markdown")) {
    const Result<std::string> markdown = leaderboard_markdown(root, *filters);
    if (!markdown) return bad_input(markdown.error());
    std::cout << *markdown;
    return exit_good;
  }
  Result<PlacedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  if (Result<Ok> kept = keep_devices(*filters, *recorded); !kept) return bad_input(kept.error());
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  std::cout << table_format(parsed).shown(best_table(*recorded, *candidates, *filters));
  return exit_good;
}

int cite_results(const fs::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed) {
  if (names.size() != 1 || names.front().find('/') == std::string::npos) {
    return bad_input({"results cite: expected one kernel, as PROBLEM/NAME"});
  }
  Result<Filters> filters = chosen_filters(parsed);
  if (!filters) return bad_input(filters.error());
  filters->kernels = names;
  Result<PlacedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  if (Result<Ok> kept = keep_devices(*filters, *recorded); !kept) {
    return bad_input({names.front() + ": " + kept.error().message +
                      "; `rekernel results best` shows what is recorded"});
  }
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  const Staleness staleness = staleness_by(*candidates);
  std::string entry;
  for (const auto& [path, bench] : *recorded) {
    for (const BenchRow& row : bench.rows) {
      if (!filters->take(row)) continue;
      const std::string stale = staleness(row);
      if (!stale.empty()) std::cerr << path.string() << ": " << stale << "\n";
      std::cout << wrapped(citation_sentence(bench, row)) << "\n\n";
      entry = citation_entry(row);
    }
  }
  std::cout << entry;
  return exit_good;
}

int compare_results(const fs::path& root, const std::vector<std::string>& names,
                    const ParsedArguments& parsed) {
  if (names.size() != 2) {
    return bad_input({"results compare: expected two bench files, or folders of results/"});
  }
  const Result<Bench> from = bench_named(root, names[0]);
  if (!from) return bad_input(from.error());
  const Result<Bench> to = bench_named(root, names[1]);
  if (!to) return bad_input(to.error());
  const Table table = comparison_table(*from, *to);
  if (table.rows.empty()) {
    return bad_input({names[0] + " and " + names[1] + " have no kernel in common"});
  }
  const TableFormat format = table_format(parsed);
  if (const auto differences = unlike_device_before(*from, *to); !differences.empty()) {
    std::cerr << wrapped(
                     "A and B were measured on different GPUs: what differs may be the GPU, not "
                     "the kernel (" +
                         joined(differences, "; ") + ")",
                     page_columns, 2)
              << "\n";
  }
  std::cout << format.shown(table)
            << format.words("A: " + names[0] + ", " + bench_caption(*from) + "\nB: " + names[1] +
                            ", " + bench_caption(*to) + "\n± is half of the 95% interval.");
  return exit_good;
}

}  // namespace rekernel
