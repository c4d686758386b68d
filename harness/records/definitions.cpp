#include "harness/records/definitions.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"
#include "harness/records/report.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

json::object to_json(const DefinitionRow& row) {
  json::array outputs;
  for (const DefinitionRow::Output& one : row.outputs) {
    outputs.push_back({{"name", one.name},
                       {"largest", one.largest},
                       {"unequal", one.unequal},
                       {"elements", one.elements},
                       {"agrees", one.agrees}});
  }
  json::object object{{"problem", row.problem},
                      {"digest", row.digest},
                      {"measured", row.measured},
                      {"truth_ns", row.truth_ns},
                      {"workspace_bytes", row.workspace_bytes},
                      {"outputs", std::move(outputs)}};
  if (!row.failure.empty()) object["failure"] = row.failure;
  return object;
}

DefinitionRow read_row(JsonReader reader) {
  DefinitionRow row;
  row.problem = reader.required("problem").string(64);
  row.digest = reader.required("digest").string(64);
  row.measured = reader.required("measured").string(10);
  row.truth_ns = reader.required("truth_ns").integer(0, most);
  row.workspace_bytes = reader.required("workspace_bytes").integer(0, most);
  for (JsonReader& one : reader.required("outputs").array(0, 32)) {
    DefinitionRow::Output output;
    output.name = one.required("name").string(64);
    output.largest = one.required("largest").string(32);
    output.unequal = one.required("unequal").integer(0, most);
    output.elements = one.required("elements").integer(0, most);
    output.agrees = one.required("agrees").boolean();
    one.no_other_keys();
    row.outputs.push_back(std::move(output));
  }
  row.failure = reader.optional_string("failure");
  reader.no_other_keys();
  return row;
}

std::string difference_text(const DefinitionRow& row) {
  std::vector<std::string> words;
  for (const DefinitionRow::Output& one : row.outputs) {
    const std::string said = one.largest.empty() ? std::to_string(one.unequal) + " of " +
                                                       std::to_string(one.elements) + " differ"
                                                 : one.largest;
    words.push_back(row.outputs.size() > 1 ? one.name + " " + said : said);
  }
  return joined(words);
}

}  // namespace

bool DefinitionRow::agrees() const {
  return failure.empty() && !outputs.empty() &&
         std::all_of(outputs.begin(), outputs.end(), [](const Output& one) { return one.agrees; });
}

json::object to_json(const DefinitionsRecord& record) {
  json::array rows;
  for (const DefinitionRow& row : record.rows) rows.push_back(to_json(row));
  return {{"schema", 1},
          {"device", {{"name", record.device_name}, {"sm", record.sm}}},
          {"toolchain", json::value_from(record.toolchain)},
          {"rows", std::move(rows)}};
}

Result<DefinitionsRecord> definitions_from_json(const json::value& value,
                                                const std::string& where) {
  JsonReader reader(where, value);
  DefinitionsRecord record;
  reader.required("schema").integer(1, 1);
  JsonReader device = reader.required("device");
  record.device_name = device.required("name").string();
  record.sm = device.required("sm").string();
  device.no_other_keys();
  record.toolchain = reader.required("toolchain").string_map();
  for (JsonReader& row : reader.required("rows").array()) record.rows.push_back(read_row(row));
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return record;
}

Result<DefinitionsRecord> load_definitions(const fs::path& path) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  return definitions_from_json(*value, path.string());
}

Result<fs::path> record_definitions(const fs::path& root, const DefinitionsRecord& measured) {
  const fs::path path = bench_path(root, measured.device_name).replace_filename("definitions.json");
  std::map<std::string, DefinitionRow> rows;
  if (fs::exists(path)) {
    const Result<DefinitionsRecord> old = load_definitions(path);
    if (!old) return old.error();
    for (const DefinitionRow& row : old->rows) rows[row.problem] = row;
  }
  for (const DefinitionRow& row : measured.rows) rows[row.problem] = row;
  DefinitionsRecord record = measured;
  record.rows.clear();
  for (const Problem& problem : catalog()) {
    if (const auto found = rows.find(problem.id); found != rows.end()) {
      record.rows.push_back(found->second);
    }
  }
  fs::create_directories(path.parent_path());
  const Result<Ok> written = write_file_atomically(path, pretty_json(to_json(record)));
  if (!written) return written.error();
  return path;
}

Table definitions_table(const DefinitionsRecord& record) {
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "difference / rms", .wraps = true},
                   {.heading = "truth, ms", .right_aligned = true},
                   {.heading = "workspace, MB", .right_aligned = true},
                   {.heading = "PyTorch", .wraps = true, .good = "agrees"}};
  for (const DefinitionRow& row : record.rows) {
    table.rows.push_back({row.problem, difference_text(row), milliseconds(row.truth_ns),
                          printed("%.0f", static_cast<double>(row.workspace_bytes) / 1e6),
                          !row.failure.empty() ? row.failure
                          : row.agrees()       ? "agrees"
                                               : "disagrees"});
  }
  return table;
}

}  // namespace rekernel
