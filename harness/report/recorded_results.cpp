#include "harness/report/recorded_results.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>

#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/project/recorded.h"
#include "harness/records/contradictions.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/report/published_runs.h"
#include "harness/terminal/tables.h"
#include "replay/report/replay_report.h"

namespace rekernel {

namespace {

RowFilter rows_of(const Filters& filters) {
  return [&filters](const BenchRow& row) { return filters.take(row); };
}

}  // namespace

Result<RecordedResults> load_results(const std::filesystem::path& root) {
  RecordedResults results;
  Result<std::map<std::string, PublishedFigures>> published = load_published(root);
  if (!published) return published.error();
  results.published = std::move(*published);
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    results.benches.emplace_back(std::filesystem::relative(path, root), std::move(*bench));
  }
  if (const auto found = contradictions_between(results.benches); !found.empty()) {
    return Error{joined(found, "\n")};
  }
  Result<std::vector<ReplayedSearch>> runs = published_runs(root);
  if (!runs) return runs.error();
  results.published_runs = std::move(*runs);
  return results;
}

Result<Ok> keep(const Filters& filters, RecordedResults& results) {
  if (Result<Ok> kept = keep_devices(filters, results.benches); !kept) return kept;
  std::erase_if(results.benches, [&](const auto& one) {
    return !filters.take_all() && taken_rows(filters, one.second).rows.empty();
  });
  // A run is of one problem, and of no kernel that has a row.
  std::erase_if(results.published_runs, [&](const ReplayedSearch& run) {
    const Problem* problem = find_problem(run.header.problem);
    return filters.name_results() || !filters.kernels.empty() ||
           (problem && !filters.take(*problem));
  });
  return Ok{};
}

std::string bench_text(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                       const TableFormat& format, const Filters& filters) {
  std::string text =
      format.shown(bench_table(bench, published, BenchColumns::all, rows_of(filters)));
  if (format.csv) return text;
  const Bench taken = taken_rows(filters, bench);
  text += "\n" + format.words(bench_caption(taken));
  for (const std::string& remark : bench_remarks(taken)) text += format.words(remark);
  return text;
}

Table bench_table_of_all(const RecordedResults& results, const Filters& filters) {
  Table all = bench_table({}, results.published, BenchColumns::all);
  for (const auto& [path, bench] : results.benches) {
    Table one = bench_table(bench, results.published, BenchColumns::all, rows_of(filters));
    std::move(one.rows.begin(), one.rows.end(), std::back_inserter(all.rows));
  }
  return all;
}

boost::json::object to_json(const RecordedResults& results, const Filters& filters) {
  boost::json::array benches;
  for (const auto& [path, bench] : results.benches) {
    boost::json::object one = to_json(taken_rows(filters, bench));
    one["path"] = path.string();
    benches.push_back(std::move(one));
  }
  boost::json::array runs;
  for (const ReplayedSearch& run : results.published_runs) runs.push_back(replay_json(run));
  return {{"schema", 1}, {"benches", std::move(benches)}, {"published_runs", std::move(runs)}};
}

}  // namespace rekernel
