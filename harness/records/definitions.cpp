#include "harness/records/definitions.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/records/report.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

json::object definition_row_json(const DefinitionRow& row) {
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

DefinitionRow read_definition_row(JsonReader reader) {
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

/// Of all outputs that are compared within a tolerance; empty where none is.
std::string largest_difference(const DefinitionRow& row) {
  std::string largest;
  for (const DefinitionRow::Output& one : row.outputs) {
    if (one.largest.empty()) continue;
    const bool is_larger = largest.empty() || !(std::strtod(one.largest.c_str(), nullptr) <=
                                                std::strtod(largest.c_str(), nullptr));
    if (is_larger) largest = one.largest;
  }
  return largest;
}

/// Of all outputs that are compared for equality; empty where none is.
std::string unequal_elements(const DefinitionRow& row) {
  std::optional<std::int64_t> sum;
  for (const DefinitionRow::Output& one : row.outputs) {
    if (one.largest.empty()) sum = sum.value_or(0) + one.unequal;
  }
  return sum ? std::to_string(*sum) : "";
}

}  // namespace

bool DefinitionRow::agrees() const {
  return failure.empty() && !outputs.empty() &&
         std::all_of(outputs.begin(), outputs.end(), [](const Output& one) { return one.agrees; });
}

json::object to_json(const DefinitionsRecord& record) {
  return problem_record_json(record, definition_row_json);
}

Result<DefinitionsRecord> load_definitions(const fs::path& path) {
  return load_problem_record<DefinitionRow>(path, read_definition_row);
}

Result<fs::path> record_definitions(const fs::path& root, const DefinitionsRecord& measured) {
  return merge_problem_record(root, "definitions.json", measured, definition_row_json,
                              read_definition_row);
}

Table definitions_table(const DefinitionsRecord& record) {
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "difference / rms", .wraps = true, .readers = Readers::people},
                   {.heading = "truth, ms", .right_aligned = true, .csv = "truth_ms"},
                   {.heading = "workspace, MB", .right_aligned = true, .csv = "workspace_mb"},
                   {.heading = "PyTorch", .wraps = true, .good = "agrees", .csv = "pytorch"},
                   {.heading = "largest_difference_over_rms", .readers = Readers::programs},
                   {.heading = "unequal_elements", .readers = Readers::programs}};
  for (const DefinitionRow& row : record.rows) {
    table.rows.push_back({row.problem, difference_text(row), milliseconds(row.truth_ns),
                          printed("%.0f", static_cast<double>(row.workspace_bytes) / 1e6),
                          !row.failure.empty() ? row.failure
                          : row.agrees()       ? "agrees"
                                               : "disagrees",
                          largest_difference(row), unequal_elements(row)});
  }
  return table;
}

}  // namespace rekernel
