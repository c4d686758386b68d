#include "harness/dataset/dataset_reader.h"

#include <boost/json.hpp>
#include <chrono>
#include <sstream>

#include "harness/base/json.h"
#include "harness/dataset/modules.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// The wheel may have to be fetched.
constexpr std::chrono::minutes longest_reading{30};
constexpr std::int64_t most_ns = std::int64_t{1} << 53;

/// The lines of JSON that the reader prints.
Result<std::vector<json::value>> read_lines(std::vector<std::string> arguments) {
  ToolCommand command;
  command.arguments = {"/usr/bin/env", "bash",
                       REKERNEL_SOURCE_DIR "/harness/dataset_parquet/make.sh"};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.deadline = longest_reading;
  const Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  if (!outcome->good()) return Error{outcome->last_words};
  std::vector<json::value> values;
  std::istringstream lines(outcome->output);
  for (std::string line; std::getline(lines, line);) {
    Result<json::value> value = parse_json(line, arguments[1]);
    if (!value) return value.error();
    values.push_back(std::move(*value));
  }
  return values;
}

std::string text_or_empty(JsonReader& reader, const char* key) {
  auto value = reader.optional(key);
  return value && !value->raw().is_null() ? value->string() : "";
}

ListedRow read_listed(JsonReader& reader) {
  ListedRow row;
  row.id = reader.required("id").string();
  row.name = reader.required("name").string();
  row.problem = reader.required("problem").string();
  row.sha256 = reader.required("sha256").string();
  row.status = reader.required("status").string();
  row.device = text_or_empty(reader, "device");
  auto median = reader.optional("median_ns");
  if (median && !median->raw().is_null()) row.median_ns = median->integer(1, most_ns);
  return row;
}

Result<DatasetRow> read_row(const json::value& value, const std::string& where) {
  JsonReader reader(where, value);
  const json::value* sha256 = value.as_object().if_contains("sha256");
  if (!sha256 || sha256->is_null()) return Error{where + ": this row's reply held no candidate"};
  DatasetRow row;
  row.listed = read_listed(reader);
  row.license = text_or_empty(reader, "license");
  const std::string plan = reader.required("plan").string(max_plan_bytes);
  std::vector<Code> modules;
  if (auto columns = reader.optional("modules"); columns && !columns->raw().is_null()) {
    modules = modules_from_columns(*columns);
  }
  if (modules.empty()) {
    modules.push_back({Language::cuda, reader.required("code").string(max_source_bytes)});
  }
  if (auto error = reader.error()) return *error;
  Result<Candidate> candidate = parse_candidate(plan, std::move(modules), where);
  if (!candidate) return candidate.error();
  if (candidate_sha256(*candidate) != row.listed.sha256) {
    return Error{where + ": sha256: its plan and code have another one, " +
                 candidate_sha256(*candidate) + ": they are not what was judged"};
  }
  row.candidate = std::move(*candidate);
  return row;
}

}  // namespace

Result<std::vector<ListedRow>> list_dataset(const fs::path& folder) {
  const Result<std::vector<json::value>> lines =
      read_lines({"list", fs::absolute(folder).string()});
  if (!lines) return lines.error();
  std::vector<ListedRow> rows;
  for (const json::value& line : *lines) {
    JsonReader reader(folder.string(), line);
    rows.push_back(read_listed(reader));
    if (auto error = reader.error()) return *error;
  }
  return rows;
}

Result<std::vector<DatasetRow>> read_dataset_rows(const fs::path& folder,
                                                  const std::vector<std::string>& ids) {
  std::vector<std::string> arguments{"rows", fs::absolute(folder).string()};
  arguments.insert(arguments.end(), ids.begin(), ids.end());
  const Result<std::vector<json::value>> lines = read_lines(std::move(arguments));
  if (!lines) return lines.error();
  if (lines->size() != ids.size()) return Error{folder.string() + ": not every row was read"};
  std::vector<DatasetRow> rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Result<DatasetRow> row = read_row((*lines)[i], folder.string() + ": " + ids[i]);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace rekernel
