#include "harness/cli/readme.h"

#include "harness/cli/published_runs.h"
#include "harness/files.h"
#include "harness/published.h"
#include "harness/record.h"
#include "harness/report.h"

namespace rekernel {

namespace {

Result<Ok> replace_between(std::string& text, const std::string& name, const std::string& content) {
  const std::string start = "<!-- " + name + ":start -->\n";
  const std::string end = "<!-- " + name + ":end -->";
  const std::size_t from = text.find(start);
  const std::size_t to = from == std::string::npos ? from : text.find(end, from);
  if (to == std::string::npos) {
    return Error{"README.md: expected the markers '" + start.substr(0, start.size() - 1) +
                 "' and '" + end + "'"};
  }
  text.replace(from + start.size(), to - from - start.size(), content);
  return Ok{};
}

Result<std::string> result_tables(const std::filesystem::path& root) {
  Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  if (!published) return published.error();
  std::string text;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench(path);
    if (!bench) return bench.error();
    text +=
        "\n" + to_markdown(bench_table(*bench, *published)) + "\n" + bench_caption(*bench) + ".\n";
  }
  return text + "\n";
}

}  // namespace

Result<std::string> generated_readme(const std::filesystem::path& root) {
  Result<std::string> readme = read_file(root / "README.md");
  if (!readme) return readme.error();
  Result<std::string> tables = result_tables(root);
  if (!tables) return tables.error();
  Result<Ok> replaced = replace_between(*readme, "results", *tables);
  if (!replaced) return replaced.error();
  Result<std::vector<ReplayedSearch>> runs = published_runs(root);
  if (!runs) return runs.error();
  replaced = replace_between(*readme, "published-runs", published_runs_markdown(*runs) + "\n");
  if (!replaced) return replaced.error();
  return readme;
}

}  // namespace rekernel
