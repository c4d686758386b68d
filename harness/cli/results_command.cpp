#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/leaderboard.h"
#include "harness/records/contradictions.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "ops/catalog.h"
#include "replay/replayer.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

using RecordedBenches = std::vector<std::pair<fs::path, Bench>>;

Result<RecordedBenches> all_recorded(const fs::path& root) {
  RecordedBenches benches;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench_of(root, path);
    if (!bench) return bench.error();
    benches.emplace_back(path, std::move(*bench));
  }
  return benches;
}

/// Rows that are newer than the recorded ones, and those of kernels that have none yet.
Bench news_in(const Bench& brought, const Bench& recorded, std::string& told) {
  Bench news = brought;
  news.rows.clear();
  for (const BenchRow& row : brought.rows) {
    const std::string name = row.problem + "/" + row.kernel + ": ";
    const auto same =
        std::find_if(recorded.rows.begin(), recorded.rows.end(), [&](const BenchRow& old) {
          return old.problem == row.problem && old.kernel == row.kernel;
        });
    if (same == recorded.rows.end()) {
      told += name + "new, " + milliseconds(row.median_ns) + " ms\n";
    } else if (row.measured > same->measured) {
      told += name + "newer (" + row.measured + ")" + [&] {
        const auto difference = difference_text(*same, row);
        return difference ? ", " + *difference : std::string();
      }() + "\n";
    } else {
      told += name + "kept: what is recorded is of " + same->measured + ", this of " +
              row.measured + "\n";
      continue;
    }
    news.rows.push_back(row);
  }
  return news;
}

/// Everything is read and judged before anything is written.
int merge_results(const fs::path& root, const std::vector<std::string>& files) {
  if (files.empty()) return bad_input({"results merge: expected bench files"});
  Result<RecordedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  RecordedBenches all = *recorded;
  std::vector<Bench> brought;
  for (const std::string& file : files) {
    Result<Bench> bench = load_bench_of(root, file);
    if (!bench) return bad_input(bench.error());
    all.emplace_back(file, *bench);
    brought.push_back(std::move(*bench));
  }
  if (const auto found = contradictions_between(all); !found.empty()) {
    return bad_input({joined(found, "\n")});
  }
  for (const Bench& bench : brought) {
    const fs::path path = bench_path(root, bench.device_name);
    Bench present;
    if (fs::exists(path)) {
      Result<Bench> loaded = load_bench(path);
      if (!loaded) return bad_input(loaded.error());
      present = std::move(*loaded);
    }
    std::string told;
    const Bench news = news_in(bench, present, told);
    if (!news.rows.empty()) {
      if (Result<fs::path> written = record_bench(root, news); !written) {
        return bad_input(written.error());
      }
    }
    std::cout << path.string() << ":\n" << told;
  }
  return exit_good;
}

int show_best(const fs::path& root, const std::vector<std::string>& problems,
              const ParsedArguments& parsed) {
  for (const std::string& id : problems) {
    if (!find_problem(id)) return bad_input({"unknown problem '" + id + "'"});
  }
  if (parsed.flag("markdown")) {
    const Result<std::string> markdown = leaderboard_markdown(root, problems);
    if (!markdown) return bad_input(markdown.error());
    std::cout << *markdown;
    return exit_good;
  }
  const Result<RecordedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  const Staleness staleness = staleness_by(*candidates);
  Table table = standings_table({});
  table.columns.insert(table.columns.begin(), {{.heading = "device"}, {.heading = "problem"}});
  for (const auto& [path, bench] : *recorded) {
    for (const Problem& problem : catalog()) {
      if (!problems.empty() &&
          std::find(problems.begin(), problems.end(), problem.id) == problems.end()) {
        continue;
      }
      for (std::vector<std::string>& row :
           standings_table(standings(bench, problem.id, staleness)).rows) {
        row.insert(row.begin(), {bench.device_name, problem.id});
        table.rows.push_back(std::move(row));
      }
    }
  }
  std::cout << table_format(parsed).shown(table);
  return exit_good;
}

/// A bench file, or the one recorded for a device: "h200".
Result<Bench> bench_named(const fs::path& root, const std::string& name) {
  const fs::path recorded = root / "results" / name / "bench.json";
  std::error_code ignored;
  const bool folder = name.find('/') == std::string::npos && fs::exists(recorded, ignored);
  return load_bench_of(root, folder ? recorded : fs::path(name));
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
  std::cout << format.shown(table)
            << format.words("A: " + names[0] + ", " + bench_caption(*from) + "\nB: " + names[1] +
                            ", " + bench_caption(*to) + "\n± is half of the 95% interval.");
  return exit_good;
}

int sign_results(const fs::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed) {
  if (!parsed.has("key")) return bad_input({"results sign: expected --key FILE"});
  const fs::path key = parsed.get<std::string>("key");
  int signatures = 0;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench(path);
    if (!bench) return bad_input(bench.error());
    for (const std::string& kernel : names.empty() ? std::vector<std::string>{""} : names) {
      const Result<int> made = sign_rows(*bench, key, kernel);
      if (!made) return bad_input(made.error());
      signatures += *made;
    }
    if (Result<Ok> written = write_file_atomically(path, pretty_json(to_json(*bench))); !written) {
      return bad_input(written.error());
    }
  }
  for (const std::string& name : names) {
    const fs::path trajectory = trajectory_path(root, name);
    if (name.find('/') != std::string::npos || !fs::exists(trajectory)) continue;
    const Result<std::string> text = read_file(trajectory);
    if (!text) return bad_input(text.error());
    const Result<std::string> signature = sign(*text, key);
    if (!signature) return bad_input(signature.error());
    if (Result<Ok> written = write_file_atomically(trajectory.string() + ".sig", *signature);
        !written) {
      return bad_input(written.error());
    }
    ++signatures;
  }
  if (signatures == 0) return bad_input({"nothing to sign: every row named has a signature"});
  std::cout << counted(static_cast<std::size_t>(signatures), "signature") << "\n";
  return exit_good;
}

}  // namespace

int results_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("action", po::value<std::string>(), "merge, best, compare or sign")(
      "what", po::value<std::vector<std::string>>(),
      "merge: bench files of other people and machines; best: problems, all by default; compare: "
      "two "
      "bench files or folders of results/; sign: kernels (softmax/online) and trajectories, every "
      "unsigned row by default")("markdown", po::bool_switch(),
                                 "best: as Markdown, with the history of each best time")(
      "key", po::value<std::string>(), "sign: the SSH key");
  add_table_options(options);
  po::positional_options_description positional;
  positional.add("action", 1).add("what", -1);
  const ParsedArguments parsed = parse_arguments(
      arguments, "rekernel results merge FILE… | best [PROBLEM…] | compare A B | sign [WHAT…]",
      "rekernel results compare h200 ../other/results/h200/bench.json\n"
      "  rekernel results best softmax --markdown",
      options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  const fs::path root = project_root();
  const std::vector<std::string> what = parsed.has("what")
                                            ? parsed.get<std::vector<std::string>>("what")
                                            : std::vector<std::string>{};
  const std::string action = parsed.has("action") ? parsed.get<std::string>("action") : "";
  if (action == "merge") return merge_results(root, what);
  if (action == "best") return show_best(root, what, parsed);
  if (action == "compare") return compare_results(root, what, parsed);
  if (action == "sign") return sign_results(root, what, parsed);
  return bad_input({"results: expected merge, best, compare or sign" +
                    (action.empty() ? "" : ", got '" + action + "'")});
}

}  // namespace rekernel
