#include "harness/records/made_mutants.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t most_mutants = std::numeric_limits<std::int64_t>::max();

json::object to_json(const MadeMutantsRow& row) {
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

fs::path path_of(const fs::path& root, const std::string& device) {
  return bench_path(root, device).replace_filename("made_mutants.json");
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
  json::array rows;
  for (const MadeMutantsRow& row : record.rows) rows.push_back(to_json(row));
  return {{"schema", 1},
          {"device", {{"name", record.device_name}, {"sm", record.sm}}},
          {"toolchain", json::value_from(record.toolchain)},
          {"rows", std::move(rows)}};
}

Result<MadeMutantsRecord> load_made_mutants(const fs::path& path) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  MadeMutantsRecord record;
  reader.required("schema").integer(1, 1);
  JsonReader device = reader.required("device");
  record.device_name = device.required("name").string();
  record.sm = device.required("sm").string();
  device.no_other_keys();
  record.toolchain = reader.required("toolchain").string_map();
  for (JsonReader& row : reader.required("rows").array())
    record.rows.push_back(read_mutants_row(row));
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return record;
}

Result<fs::path> record_made_mutants(const fs::path& root, const MadeMutantsRecord& measured) {
  const fs::path path = path_of(root, measured.device_name);
  std::map<std::string, MadeMutantsRow> rows;
  if (fs::exists(path)) {
    const Result<MadeMutantsRecord> old = load_made_mutants(path);
    if (!old) return old.error();
    for (const MadeMutantsRow& row : old->rows) rows[row.problem] = row;
  }
  for (const MadeMutantsRow& row : measured.rows) rows[row.problem] = row;
  MadeMutantsRecord record = measured;
  record.rows.clear();
  for (const Problem& problem : catalog()) {
    const auto found = rows.find(problem.id);
    if (found != rows.end()) record.rows.push_back(found->second);
  }
  fs::create_directories(path.parent_path());
  const Result<Ok> written = write_file_atomically(path, pretty_json(to_json(record)));
  if (!written) return written.error();
  return path;
}

Table made_mutants_table(const MadeMutantsRecord& record) {
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "slow candidate", .wraps = true},
                   {.heading = "kinds", .right_aligned = true},
                   {.heading = "mutants", .right_aligned = true},
                   {.heading = "caught", .right_aligned = true},
                   {.heading = "equal", .right_aligned = true}};
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
                          std::to_string(row.equal)});
  }
  return table;
}

}  // namespace rekernel
