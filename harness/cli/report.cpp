#include "harness/records/report.h"

#include <boost/json.hpp>
#include <iostream>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/published_runs.h"
#include "harness/cli/readme.h"
#include "harness/cli/results.h"
#include "harness/records/noise.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// All or nothing: what cannot be made leaves every page as it is.
int rewrite_pages(const std::filesystem::path& root) {
  std::vector<std::pair<const char*, Result<std::string>>> pages;
  pages.emplace_back("README.md", generated_readme(root));
  pages.emplace_back("tests/adversarial/README.md", gallery_page(root));
  pages.emplace_back("harness/TIMING.md", timing_page(root));
  pages.emplace_back("ops/TOLERANCES.md", tolerances_page(root));
  pages.emplace_back("tests/mutants/README.md", mutants_page(root));
  for (const auto& [name, page] : pages) {
    if (!page) return bad_input(page.error());
  }
  for (const auto& [name, page] : pages) {
    Result<Ok> written = write_file_atomically(root / name, *page);
    if (!written) return bad_input(written.error());
  }
  return exit_good;
}

int print_text(const RecordedResults& results, const TableFormat& format) {
  for (const auto& [path, bench] : results.benches) {
    std::cout << bench_text(bench, results.published, format) << "\n";
  }
  std::cout << published_runs_text(results.published_runs, format);
  return exit_good;
}

int print_markdown(const RecordedResults& results) {
  for (const auto& [path, bench] : results.benches) {
    std::cout << to_markdown(bench_table(bench, results.published)) << "\n"
              << bench_caption(bench) << "\n";
  }
  std::cout << published_runs_markdown(results.published_runs);
  return exit_good;
}

/// The outputs exclude each other.
Result<Ok> check_outputs(const ParsedArguments& parsed) {
  std::vector<std::string> asked;
  for (const char* name : {"markdown", "json", "csv", "readme"}) {
    if (parsed.flag(name)) asked.push_back(std::string("--") + name);
  }
  if (asked.size() > 1) return Error{joined(asked, " and ") + ": expected one of them"};
  return Ok{};
}

}  // namespace

int report_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("markdown", po::bool_switch(), "Markdown instead of text")(
      "json", po::bool_switch(), "the same as JSON")(
      "readme", po::bool_switch(),
      "rewrite the generated tables of README.md and of the pages in the folders instead");
  add_table_options(options);
  const ParsedArguments parsed = parse_arguments(arguments, "rekernel report [options]",
                                                 "rekernel report --markdown", options);
  if (parsed.exit_status) return *parsed.exit_status;
  if (Result<Ok> checked = check_outputs(parsed); !checked) return bad_input(checked.error());

  const std::filesystem::path root = project_root();
  if (parsed.flag("readme")) return rewrite_pages(root);
  const Result<RecordedResults> results = load_results(root);
  if (!results) return bad_input(results.error());
  if (parsed.flag("markdown")) return print_markdown(*results);
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*results));
  } else if (parsed.flag("csv")) {
    std::cout << to_csv(bench_table_of_all(*results));
  } else {
    print_text(*results, table_format(parsed));
  }
  return exit_good;
}

}  // namespace rekernel
