#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/problem.h"
#include "harness/compile/compiler_message.h"
#include "harness/measuring/bench.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

std::string bench_text(const Bench& bench, const std::filesystem::path& root,
                       const TableFormat& format) {
  Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  std::string text = format.shown(
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

Page bench_page() {
  Page page;
  page.description =
      "Judges and times kernels of generated/ beside the libraries' references, interleaved on one "
      "GPU, and prints them as the table of README.md.";
  page.takes({"name", "PROBLEM|KERNEL",
              "problems whose kernels to bench, or kernels as "
              "PROBLEM/NAME; all by default",
              Count::any},
             list_value("NAME", {Names::problem, Names::kernel}));
  page.examples = {{"rekernel bench softmax matmul_fp32/split_beforehand --record"},
                   {"rekernel bench --slow softmax --json"}};
  add_problem_option(page.group("Measuring"));
  page.group("Measuring")
      .add_options()("slow", po::bool_switch(),
                     "instead of kernels, the slow candidate of each problem, all by default: how "
                     "fast are the references of a problem that has no kernel yet?");
  page.group("Measuring")
      .add_options()("samples", whole_number(10, 10000)->default_value(60), "timed samples each")(
          "pytorch", one_of({"auto", "on", "eager", "off"})->default_value("auto"),
          "time PyTorch too, eager and compiled, or eager alone; auto: when python3 can import "
          "torch");
  add_device_options(page.group("Measuring"));
  page.group("Output").add_options()("record", po::bool_switch(),
                                     "merge the rows into results/<gpu>/bench.json; with --slow, "
                                     "slow.json")("json", po::bool_switch(),
                                                  "print the record as JSON");
  add_wide_option(page.group("Output"));
  page.statuses[1] = "a kernel did not pass";
  return page;
}

Result<std::vector<Candidate>> slow_candidates(const std::vector<std::string>& ids) {
  std::vector<Candidate> candidates;
  if (ids.empty()) {
    for (const Problem& problem : catalog()) {
      candidates.push_back(scaffold_candidate(problem, slow_name));
    }
  }
  for (const std::string& id : ids) {
    const Result<const Problem*> problem = known_problem(id);
    if (!problem) return Error{"--slow: " + problem.error().message};
    candidates.push_back(scaffold_candidate(**problem, slow_name));
  }
  return candidates;
}

/// Kernels of problems from elsewhere lie in folders of their own.
Result<std::vector<Candidate>> benched_candidates(const ParsedArguments& parsed,
                                                  const std::filesystem::path& root) {
  const std::vector<std::string> names = parsed.has("name")
                                             ? parsed.get<std::vector<std::string>>("name")
                                             : std::vector<std::string>{};
  if (parsed.flag("slow")) return slow_candidates(names);
  if (!parsed.has("problem")) return committed_candidates(root, names);
  if (names.empty()) return Error{"bench: expected the kernels' folders with --problem"};
  return named_candidates(names);
}

const Problem* first_strangers(const std::vector<Candidate>& candidates) {
  for (const Candidate& candidate : candidates) {
    const Problem* problem = find_problem(candidate.problem);
    if (is_strangers(*problem)) return problem;
  }
  return nullptr;
}

Result<Ok> check_strangers(const std::vector<Candidate>& candidates,
                           const ParsedArguments& parsed) {
  const Problem* problem = first_strangers(candidates);
  if (problem && parsed.flag("record")) {
    return Error{"--record: results/ keeps the results of the project's problems alone, and '" +
                 problem->id + "' lies elsewhere: expected its file in ops/problems, or --json"};
  }
  return Ok{};
}

}  // namespace

int bench_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, bench_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }

  BenchOptions bench_options;
  bench_options.samples = parsed.get<int>("samples");
  const std::string pytorch = parsed.get<std::string>("pytorch");

  const std::filesystem::path root = project_root();
  Result<std::vector<Candidate>> candidates = benched_candidates(parsed, root);
  if (!candidates) return bad_input(candidates.error());
  if (const Result<Ok> possible = check_strangers(*candidates, parsed); !possible) {
    return bad_input(possible.error());
  }
  Result<std::vector<int>> devices = chosen_devices(parsed);
  if (!devices) return bad_input(devices.error());
  bench_options.devices = std::move(*devices);
  bench_options.pytorch = pytorch != "off" && pytorch_is_installed();
  bench_options.compiled_pytorch = pytorch != "eager";
  bench_options.without_pytorch =
      pytorch == "off" ? "--pytorch off" : "python3 here cannot import torch";
  if ((pytorch == "on" || pytorch == "eager") && !bench_options.pytorch) {
    return bad_input({"--pytorch " + pytorch + ": python3 here cannot import torch"});
  }

  std::filesystem::path recorded;
  const char* file = parsed.flag("slow") ? slow_file : "bench.json";
  if (parsed.flag("record")) {  // row by row: what is measured stays, whatever ends the run
    bench_options.arrived = [&](const Bench& so_far) -> Result<Ok> {
      Result<std::filesystem::path> path = record_bench(root, so_far, file);
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
    std::cout << bench_text(*bench, root, table_format(parsed));
  }
  if (!recorded.empty()) std::cerr << "recorded in " << recorded.string() << "\n";
  const bool all_passed = std::all_of(bench->rows.begin(), bench->rows.end(),
                                      [](const auto& row) { return row.status == Status::passed; });
  return all_passed ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
