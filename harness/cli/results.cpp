#include <algorithm>
#include <iostream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/measuring/bench.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/recorded.h"
#include "harness/project/root.h"
#include "harness/records/contradictions.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/report/leaderboard.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"
#include "replay/playback/replayer.h"
#include "replay/report/replay_report.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

using RecordedBenches = std::vector<std::pair<fs::path, Bench>>;

Result<RecordedBenches> all_recorded(const fs::path& root) {
  RecordedBenches benches;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    benches.emplace_back(path, std::move(*bench));
  }
  return benches;
}

bool is_known_signer(const BenchRow& row) {
  return row.signer != Signer{Signer::Kind::unsigned_, ""}.text() &&
         row.signer != Signer{Signer::Kind::unknown, ""}.text();
}

/// Rows that are newer than the recorded ones, and those of kernels that have none yet. A row that
/// somebody known answers for stays, unless the new one is as good or `replace` names it.
Bench news_in(const Bench& brought, const Bench& recorded, const std::vector<std::string>& replace,
              std::string& told) {
  Bench news = brought;
  news.rows.clear();
  for (const BenchRow& row : brought.rows) {
    const std::string kernel = row.problem + "/" + row.kernel;
    const auto same =
        std::find_if(recorded.rows.begin(), recorded.rows.end(), [&](const BenchRow& old) {
          return old.problem == row.problem && old.kernel == row.kernel;
        });
    if (same == recorded.rows.end()) {
      told += kernel + ": new, " + milliseconds(row.median_ns) + " ms\n";
    } else if (row.measured <= same->measured) {
      told += kernel + ": kept: what is recorded is of " + same->measured + ", this of " +
              row.measured + "\n";
      continue;
    } else if (is_known_signer(*same) && !is_known_signer(row) &&
               std::find(replace.begin(), replace.end(), kernel) == replace.end()) {
      told += kernel + ": kept: what is recorded is signed by " + same->signer + ", this is " +
              (row.signature.empty() ? "unsigned" : "of an " + row.signer) + "; --replace " +
              kernel + " takes it all the same\n";
      continue;
    } else {
      const auto difference = difference_text(*same, row);
      told +=
          kernel + ": newer (" + row.measured + ")" + (difference ? ", " + *difference : "") + "\n";
    }
    news.rows.push_back(row);
  }
  return news;
}

/// What is recorded of a device; empty if nothing is.
Result<Bench> recorded_of(const fs::path& root, const std::string& device_name) {
  const fs::path path = bench_path(root, device_name);
  return fs::exists(path) ? load_record(root, path) : Result<Bench>(Bench{});
}

/// Signatures cover the device: one that is another would take them from all rows.
Result<Ok> check_device(const std::string& file, const Bench& brought, const Bench& recorded) {
  if (recorded.device_name.empty()) return Ok{};
  const std::vector<std::string> differences = unlike_device_before(recorded, brought);
  if (differences.empty()) return Ok{};
  return Error{file +
               ": measured on another device than what is recorded: " + joined(differences, "; ")};
}

/// Everything is read and judged before anything is written.
int merge_results(const fs::path& root, const std::vector<std::string>& files,
                  const std::vector<std::string>& replace) {
  if (files.empty()) return bad_input({"results merge: expected bench files"});
  Result<RecordedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  RecordedBenches all = *recorded;
  std::vector<Bench> brought;
  for (const std::string& file : files) {
    Result<Bench> bench = load_record(root, file);
    if (!bench) return bad_input(bench.error());
    const fs::path place = bench_path(root, bench->device_name);
    for (const auto& [path, other] : all) {
      if (bench_path(root, other.device_name) != place) continue;
      if (Result<Ok> same = check_device(file, *bench, other); !same) {
        return bad_input(same.error());
      }
    }
    all.emplace_back(file, *bench);
    brought.push_back(std::move(*bench));
  }
  if (const auto found = contradictions_between(all); !found.empty()) {
    return bad_input({joined(found, "\n")});
  }
  for (const Bench& bench : brought) {
    const Result<Bench> present = recorded_of(root, bench.device_name);
    if (!present) return bad_input(present.error());
    std::string told;
    const Bench news = news_in(bench, *present, replace, told);
    if (!news.rows.empty()) {
      if (Result<fs::path> written = record_bench(root, news); !written) {
        return bad_input(written.error());
      }
    }
    std::cout << bench_path(root, bench.device_name).string() << ":\n" << told;
  }
  return exit_good;
}

int show_best(const fs::path& root, const std::vector<std::string>& problems,
              const ParsedArguments& parsed) {
  for (const std::string& id : problems) {
    if (const auto known = known_problem(id); !known) return bad_input(known.error());
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
  return load_record(root, folder ? recorded : fs::path(name));
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

/// What `results sign` is asked to sign: rows and searches are named apart, since both can have one
/// name.
struct ToSign {
  std::vector<std::string> kernels;  ///< "softmax/online"
  std::vector<fs::path> trajectories;
};

Result<ToSign> named_to_sign(const fs::path& root, const std::vector<std::string>& names) {
  constexpr std::string_view folder = "trajectories/";
  ToSign named;
  for (const std::string& name : names) {
    if (name.starts_with(folder)) {
      std::string stem = name.substr(folder.size());
      if (stem.ends_with(".jsonl")) stem.resize(stem.size() - std::string_view(".jsonl").size());
      fs::path path = root / "trajectories" / (stem + ".jsonl");
      if (stem.find('/') != std::string::npos || !fs::is_regular_file(path)) {
        return Error{name + ": no recorded search; expected trajectories/NAME"};
      }
      named.trajectories.push_back(std::move(path));
    } else if (name.find('/') != std::string::npos) {
      named.kernels.push_back(name);
    } else {
      return Error{name + ": expected PROBLEM/KERNEL for a row, or trajectories/" + name +
                   " for a recorded search"};
    }
  }
  return named;
}

/// The record that has the row: the only one, or that of `device`, a folder of results/.
Result<std::size_t> record_with(const RecordedBenches& benches, const std::string& kernel,
                                const std::string& device) {
  std::vector<std::string> devices;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < benches.size(); ++i) {
    const auto& [path, bench] = benches[i];
    const std::string name = path.parent_path().filename().string();
    if (!device.empty() && name != device) continue;
    const auto row = std::find_if(bench.rows.begin(), bench.rows.end(), [&](const BenchRow& one) {
      return one.problem + "/" + one.kernel == kernel;
    });
    if (row == bench.rows.end()) continue;
    if (!row->signature.empty()) {
      return Error{kernel + ": its row on " + name + " has a signature (" + row->signer +
                   "); measure it anew to sign it anew"};
    }
    devices.push_back(name);
    found = i;
  }
  if (devices.size() > 1) {
    return Error{kernel + ": measured on " + joined(devices, " and ") +
                 "; --on says which of them you measured"};
  }
  if (!found) {
    return Error{kernel + ": no row" + (device.empty() ? " in results/" : " in results/" + device)};
  }
  return *found;
}

/// Nothing in a row tells on which machine it was measured: who signs names what they measured.
/// Everything is looked up before anything is signed.
int sign_results(const fs::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed) {
  if (!parsed.has("key")) return bad_input({"results sign: expected --key FILE"});
  if (names.empty()) {
    return bad_input(
        {"results sign: expected what you measured: rows as PROBLEM/KERNEL, searches "
         "as trajectories/NAME"});
  }
  const fs::path key = parsed.get<std::string>("key");
  const std::string device = parsed.has("on") ? parsed.get<std::string>("on") : "";
  const Result<ToSign> named = named_to_sign(root, names);
  if (!named) return bad_input(named.error());
  Result<RecordedBenches> benches = all_recorded(root);
  if (!benches) return bad_input(benches.error());
  std::set<std::size_t> touched;
  for (const std::string& kernel : named->kernels) {
    const Result<std::size_t> record = record_with(*benches, kernel, device);
    if (!record) return bad_input(record.error());
    touched.insert(*record);
  }
  std::size_t signatures = 0;
  for (const std::size_t record : touched) {
    auto& [path, bench] = (*benches)[record];
    for (const std::string& kernel : named->kernels) {
      const Result<int> made = sign_row(bench, key, kernel);
      if (!made) return bad_input(made.error());
      signatures += static_cast<std::size_t>(*made);
    }
    if (Result<Ok> written = write_file_atomically(path, pretty_json(to_json(bench))); !written) {
      return bad_input(written.error());
    }
  }
  for (const fs::path& trajectory : named->trajectories) {
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
  std::cout << counted(signatures, "signature") << "\n";
  return exit_good;
}

}  // namespace

int results_command(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("action", po::value<std::string>(), "merge, best, compare or sign")(
      "what", po::value<std::vector<std::string>>(),
      "merge: bench files of other people and machines; best: problems, all by default; compare: "
      "two bench files or folders of results/; sign: rows (softmax/online) and searches "
      "(trajectories/softmax) that you measured")(
      "markdown", po::bool_switch(), "best: as Markdown, with the history of each best time")(
      "replace", po::value<std::vector<std::string>>()->composing(),
      "merge: take the row of this kernel (softmax/online), though a known signer's is recorded "
      "and "
      "this one is not of a known signer")("key", po::value<std::string>(), "sign: the SSH key")(
      "on", po::value<std::string>(),
      "sign: the folder of results/ whose rows are meant (h200), where several have them");
  add_table_options(options);
  po::positional_options_description positional;
  positional.add("action", 1).add("what", -1);
  const ParsedArguments parsed = parse_arguments(
      arguments,
      "rekernel results merge FILE… | best [PROBLEM…] | compare A B | sign WHAT… --key FILE",
      "rekernel results compare h200 ../other/results/h200/bench.json\n"
      "  rekernel results best softmax --markdown",
      options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  const std::vector<std::string> what = parsed.has("what")
                                            ? parsed.get<std::vector<std::string>>("what")
                                            : std::vector<std::string>{};
  const std::string action = parsed.has("action") ? parsed.get<std::string>("action") : "";
  if (action == "merge" || action == "sign") {
    if (const Result<fs::path> own = own_project(); !own) return bad_input(own.error());
  }
  const fs::path root = project_root();
  if (action == "merge") {
    return merge_results(root, what,
                         parsed.has("replace") ? parsed.get<std::vector<std::string>>("replace")
                                               : std::vector<std::string>{});
  }
  if (action == "best") return show_best(root, what, parsed);
  if (action == "compare") return compare_results(root, what, parsed);
  if (action == "sign") return sign_results(root, what, parsed);
  return bad_input({"results: expected merge, best, compare or sign" +
                    (action.empty() ? "" : ", got '" + action + "'")});
}

}  // namespace rekernel
