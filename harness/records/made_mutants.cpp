#include "harness/records/made_mutants.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t most_mutants = std::numeric_limits<std::int64_t>::max();

json::object mutants_row_json(const MadeMutantsRow& row) {
  json::object kinds;
  for (const auto& [kind, counts] : row.kinds) {
    kinds[kind] = {{"caught", counts.first}, {"missed", counts.second}};
  }
  json::object object{{"problem", row.problem}, {"digest", row.digest}, {"measured", row.measured},
                      {"passed", row.passed},   {"strict", row.strict}, {"robust", row.robust},
                      {"kinds", kinds},         {"equal", row.equal}};
  if (!row.why.empty()) object["why"] = row.why;
  if (!row.stress_left_out.empty()) {
    object["stress_left_out"] = json::value_from(row.stress_left_out);
  }
  if (!row.missed.empty()) object["missed"] = json::value_from(row.missed);
  if (!row.failure.empty()) object["failure"] = row.failure;
  return object;
}

MadeMutantsRow read_mutants_row(JsonReader reader) {
  MadeMutantsRow row;
  row.problem = reader.required("problem").string(64);
  row.digest = reader.required("digest").string(64);
  row.measured = reader.required("measured").string(10);
  row.passed = reader.required("passed").boolean();
  row.strict = reader.required("strict").boolean();
  row.robust = reader.required("robust").boolean();
  for (auto& [kind, counts] : reader.required("kinds").entries()) {
    row.kinds[kind] = {counts.required("caught").integer(0, most_mutants),
                       counts.required("missed").integer(0, most_mutants)};
    counts.no_other_keys();
  }
  row.equal = reader.required("equal").integer(0, most_mutants);
  row.why = reader.optional_string("why");
  if (auto left_out = reader.optional("stress_left_out")) row.stress_left_out = left_out->strings();
  if (auto missed = reader.optional("missed")) row.missed = missed->strings();
  row.failure = reader.optional_string("failure");
  reader.no_other_keys();
  return row;
}

}  // namespace

std::int64_t MadeMutantsRow::caught() const {
  std::int64_t sum = 0;
  for (const auto& [kind, counts] : kinds) sum += counts.first;
  return sum;
}

std::int64_t MadeMutantsRow::counted() const {
  std::int64_t sum = 0;
  for (const auto& [kind, counts] : kinds) sum += counts.first + counts.second;
  return sum;
}

json::object to_json(const MadeMutantsRecord& record) {
  return problem_record_json(record, mutants_row_json);
}

Result<MadeMutantsRecord> load_made_mutants(const fs::path& path) {
  return load_problem_record<MadeMutantsRow>(path, read_mutants_row);
}

Result<fs::path> record_made_mutants(const fs::path& root, const MadeMutantsRecord& measured) {
  return merge_problem_record(root, "made_mutants.json", measured, mutants_row_json,
                              read_mutants_row);
}

Table made_mutants_table(const MadeMutantsRecord& record) {
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "slow candidate", .wraps = true, .csv = "slow_candidate"},
                   {.heading = "kinds", .right_aligned = true},
                   {.heading = "mutants", .right_aligned = true},
                   {.heading = "caught", .right_aligned = true, .readers = Readers::people},
                   {.heading = "equal", .right_aligned = true},
                   {.heading = "percent_caught", .readers = Readers::programs}};
  for (const MadeMutantsRow& row : record.rows) {
    std::string candidate = row.passed ? "passed" : "failed: " + row.why;
    if (row.strict) candidate += ", strict";
    if (row.robust) candidate += ", robust";
    if (row.passed && !row.robust) candidate += "; not robust: " + row.why;
    if (!row.failure.empty()) candidate = row.failure;
    const double share = row.counted() == 0 ? 100.0
                                            : 100.0 * static_cast<double>(row.caught()) /
                                                  static_cast<double>(row.counted());
    table.rows.push_back({row.problem, candidate, std::to_string(row.kinds.size()),
                          std::to_string(row.counted()), printed("%.1f%%", share),
                          std::to_string(row.equal), printed("%.1f", share)});
  }
  return table;
}

}  // namespace rekernel
