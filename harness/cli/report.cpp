#include "harness/report.h"

#include <iostream>

#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/published_runs.h"
#include "harness/cli/readme.h"
#include "harness/files.h"
#include "harness/gallery.h"

namespace rekernel {

namespace po = boost::program_options;

int report_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("markdown", po::bool_switch(), "Markdown instead of text")(
      "readme", po::bool_switch(),
      "rewrite the generated tables of README.md and tests/adversarial/README.md instead");
  const ParsedArguments parsed = parse_arguments(arguments, "rekernel report [options]",
                                                 "rekernel report --markdown", options);
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  if (parsed.flag("readme")) {
    Result<std::string> readme = generated_readme(root);
    if (!readme) return bad_input(readme.error());
    Result<std::string> gallery = gallery_page(root);
    if (!gallery) return bad_input(gallery.error());
    Result<Ok> written = write_file_atomically(root / "README.md", *readme);
    if (written) {
      written = write_file_atomically(root / "tests" / "adversarial" / "README.md", *gallery);
    }
    return written ? exit_good : bad_input(written.error());
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
