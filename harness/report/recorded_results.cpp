#include "harness/report/recorded_results.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>

#include "harness/base/text.h"
#include "harness/project/recorded.h"
#include "harness/records/contradictions.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/report/published_runs.h"
#include "harness/terminal/tables.h"
#include "replay/report/replay_report.h"

namespace rekernel {

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

std::string bench_text(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                       const TableFormat& format) {
  std::string text = format.shown(bench_table(bench, published, BenchColumns::all));
  if (format.csv) return text;
  text += "\n" + format.words(bench_caption(bench));
  for (const std::string& remark : bench_remarks(bench)) text += format.words(remark);
  return text;
}

Table bench_table_of_all(const RecordedResults& results) {
  Table all = bench_table({}, results.published, BenchColumns::all);
  for (const auto& [path, bench] : results.benches) {
    Table one = bench_table(bench, results.published, BenchColumns::all);
    std::move(one.rows.begin(), one.rows.end(), std::back_inserter(all.rows));
  }
  return all;
}

boost::json::object to_json(const RecordedResults& results) {
  boost::json::array benches;
  for (const auto& [path, bench] : results.benches) {
    boost::json::object one = to_json(bench);
    one["path"] = path.string();
    benches.push_back(std::move(one));
  }
  boost::json::array runs;
  for (const ReplayedSearch& run : results.published_runs) runs.push_back(replay_json(run));
  return {{"schema", 1}, {"benches", std::move(benches)}, {"published_runs", std::move(runs)}};
}

}  // namespace rekernel
