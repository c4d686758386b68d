#include "harness/report/readme.h"

#include <algorithm>
#include <functional>

#include "harness/base/files.h"
#include "harness/base/markdown.h"
#include "harness/problems/catalog.h"
#include "harness/project/recorded.h"
#include "harness/records/published.h"
#include "harness/records/record.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/report/published_runs.h"
#include "harness/report/study.h"

namespace rekernel {

namespace {

std::size_t references_timed(const Bench& bench) {
  std::size_t count = 0;
  for (const BenchRow& row : bench.rows) count += row.references.size();
  return count;
}

/// Which rows stand in a table: those of the published problems, or the others.
enum class Rows { published, others };

Result<std::vector<Bench>> loaded_benches(const std::filesystem::path& root) {
  std::vector<Bench> benches;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    benches.push_back(std::move(*bench));
  }
  return benches;
}

Bench chosen_rows(Bench bench, Rows rows) {
  std::erase_if(bench.rows, [&](const BenchRow& row) {
    const Problem* problem = find_problem(row.problem);
    const bool published = problem && problem->group == published_group;
    return published != (rows == Rows::published);
  });
  return bench;
}

std::string result_tables(const std::vector<Bench>& all,
                          const std::map<std::string, PublishedFigures>& published, Rows rows) {
  std::vector<Bench> benches;
  for (const Bench& bench : all) benches.push_back(chosen_rows(bench, rows));
  // First the device on which the kernels were timed beside most.
  std::ranges::stable_sort(benches, std::ranges::greater(), references_timed);
  std::string text;
  for (const Bench& bench : benches) {
    if (bench.rows.empty()) continue;
    text += "\n" + to_markdown(bench_table(bench, published)) + "\n" +
            markdown_text(bench_caption(bench)) + ".\n";
  }
  return text + "\n";
}

}  // namespace

Result<std::string> generated_readme(const std::filesystem::path& root) {
  Result<std::string> readme = read_file(root / "README.md");
  if (!readme) return readme.error();
  const Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  if (!published) return published.error();
  const Result<std::vector<Bench>> benches = loaded_benches(root);
  if (!benches) return benches.error();
  Result<Ok> replaced = replace_section(
      *readme, "results", result_tables(*benches, *published, Rows::published), "README.md");
  if (!replaced) return replaced.error();
  Result<std::vector<ReplayedSearch>> runs = published_runs(root);
  if (!runs) return runs.error();
  replaced = replace_section(*readme, "published-runs", published_runs_markdown(*runs) + "\n",
                             "README.md");
  if (!replaced) return replaced.error();
  const Result<std::vector<StudyOnRecord>> studies = studies_on_record(root);
  if (!studies) return studies.error();
  replaced = replace_section(*readme, "studies", studies_markdown(*studies), "README.md");
  if (!replaced) return replaced.error();
  replaced = replace_section(*readme, "other-results",
                             result_tables(*benches, *published, Rows::others), "README.md");
  if (!replaced) return replaced.error();
  return readme;
}

}  // namespace rekernel
