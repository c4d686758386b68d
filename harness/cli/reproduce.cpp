#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/measuring/bench.h"
#include "harness/measuring/references.h"
#include "harness/project/candidates.h"
#include "harness/project/compile_all.h"
#include "harness/project/root.h"
#include "harness/report/published_runs.h"
#include "harness/report/recorded_results.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

int reproduce_on_gpu(const std::filesystem::path& root, const std::vector<Candidate>& candidates,
                     const ParsedArguments& parsed) {
  const Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  if (!published) return bad_input(published.error());
  BenchOptions options;
  options.pytorch = pytorch_is_installed();
  Result<Bench> bench = run_bench(candidates, options);
  if (!bench) return bad_input(bench.error());
  std::cout << (parsed.flag("json") ? pretty_json(to_json(*bench))
                                    : bench_text(*bench, *published, table_format(parsed)));
  const bool all_passed = std::all_of(bench->rows.begin(), bench->rows.end(),
                                      [](const auto& row) { return row.status == Status::passed; });
  return all_passed ? exit_good : exit_verdict_failed;
}

void print_record(const RecordedResults& results, const std::vector<CompileCheck>& checks,
                  const std::string& why, const TableFormat& format) {
  std::cout << format.words("This machine cannot measure (" + why + ").")
            << format.words(
                   "Every committed kernel, compiled for every architecture that it runs on:")
            << "\n"
            << compile_text(checks, format) << "\n";
  for (const auto& [path, bench] : results.benches) {
    std::cout << format.words("RECORDED, not measured here (" + path.string() + "):") << "\n"
              << bench_text(bench, results.published, format) << "\n";
  }
  if (!results.published_runs.empty()) {
    std::cout << format.words(
                     "RECORDED, published runs re-created (`rekernel replay NAME --measure` times "
                     "them on a GPU):")
              << "\n"
              << published_runs_text(results.published_runs, format);
  }
}

/// What can be shown without a GPU. In CSV, the recorded results alone: one file holds one table.
int reproduce_from_record(const std::filesystem::path& root,
                          const std::vector<Candidate>& candidates, const std::string& why,
                          const ParsedArguments& parsed) {
  Result<RecordedResults> results = load_results(root);
  if (!results) return bad_input(results.error());
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return bad_input(compiler.error());
  const std::vector<CompileCheck> checks = compile_all(*compiler, candidates);
  const TableFormat format = table_format(parsed);
  if (parsed.flag("json")) {
    boost::json::object json = to_json(*results);
    json["measured_here"] = false;
    json["why_not"] = why;
    json["compiled"] = compile_json(checks);
    std::cout << pretty_json(json);
  } else if (format.csv) {
    std::cout << to_csv(bench_table_of_all(*results));
  } else {
    print_record(*results, checks, why, format);
  }
  return all_compile(checks) ? exit_good : exit_verdict_failed;
}

Page reproduce_page() {
  Page page;
  page.description =
      "With a GPU, measures every committed kernel and prints the table of README.md. Without one, "
      "compiles every kernel for every architecture and shows what was recorded.";
  page.examples = {{"rekernel reproduce"}, {"rekernel reproduce --csv"}};
  page.group("Output").add_options()(
      "json", po::bool_switch(),
      "print what was measured, or without a GPU what is recorded, as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "a kernel did not pass, or without a GPU did not compile";
  return page;
}

}  // namespace

int reproduce_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, reproduce_page());
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  Result<int> devices = device_count();
  if (!devices) return reproduce_from_record(root, *candidates, devices.error().message, parsed);
  return reproduce_on_gpu(root, *candidates, parsed);
}

}  // namespace rekernel
