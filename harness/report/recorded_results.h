#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/records/published.h"
#include "harness/records/record.h"
#include "harness/report/filters.h"
#include "harness/terminal/tables.h"
#include "ops/result.h"
#include "replay/playback/replayer.h"

namespace rekernel {

/// All that is recorded of times: a bench file for each GPU, and the searches that stand beside a
/// published run.
struct RecordedResults {
  std::map<std::string, PublishedFigures> published;
  std::vector<std::pair<std::filesystem::path, Bench>> benches;  ///< by path, from the root
  std::vector<ReplayedSearch> published_runs;
};

/// The error names the file that cannot be read.
Result<RecordedResults> load_results(const std::filesystem::path& root);

/// Leaves what the filters take. Error where that is nothing.
Result<Ok> keep(const Filters& filters, RecordedResults& results);

/// A bench's table, its caption, and what the verdicts and references have to say; of the rows that
/// are taken.
std::string bench_text(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                       const TableFormat& format, const Filters& filters = {});
/// The same rows of all benches.
Table bench_table_of_all(const RecordedResults& results, const Filters& filters = {});
/// {"benches": […], "published_runs": […]} with the rows that are taken, each in the shape in which
/// it is recorded and replayed.
boost::json::object to_json(const RecordedResults& results, const Filters& filters = {});

}  // namespace rekernel
