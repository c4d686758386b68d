#include "harness/records/report.h"

#include <iostream>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/files.h"
#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/published_runs.h"
#include "harness/cli/readme.h"
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

}  // namespace

int report_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("markdown", po::bool_switch(), "Markdown instead of text")(
      "readme", po::bool_switch(),
      "rewrite the generated tables of README.md and of the pages in the folders instead");
  const ParsedArguments parsed = parse_arguments(arguments, "rekernel report [options]",
                                                 "rekernel report --markdown", options);
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  if (parsed.flag("readme")) {
    return rewrite_pages(root);
  }
  Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  if (!published) return bad_input(published.error());
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench(path);
    if (!bench) return bad_input(bench.error());
    if (parsed.flag("markdown")) {
      std::cout << to_markdown(bench_table(*bench, *published)) << "\n"
                << bench_caption(*bench) << "\n";
    } else {
      std::cout << bench_text(*bench, root);
    }
  }
  Result<std::vector<ReplayedSearch>> runs = published_runs(root);
  if (!runs) return bad_input(runs.error());
  std::cout << (parsed.flag("markdown") ? published_runs_markdown(*runs)
                                        : "\n" + published_runs_text(*runs));
  return exit_good;
}

}  // namespace rekernel
