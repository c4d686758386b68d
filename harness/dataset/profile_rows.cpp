// What a profiler counted of candidates of recorded searches.
#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/dataset/fixture_rows.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

std::vector<fs::path> profiles(const fs::path& root) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& device : fs::directory_iterator(root / "results", ignored)) {
    for (const auto& entry : fs::directory_iterator(device.path() / "replay", ignored)) {
      if (entry.path().filename().string().ends_with(".ncu.json")) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

json::array metric_columns(JsonReader reader) {
  json::array columns;
  for (auto& [name, figure] : reader.entries()) {
    if (figure.raw().is_structured()) figure.expect("a number or a text");
    const json::value& value = figure.raw();
    json::object column{{"name", name}};
    if (value.is_number()) {
      column["value"] = value.to_number<double>();
    } else {
      column["text"] = value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<Ok> put_profile(const fs::path& path, const std::string& license, RowStream& rows) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  const std::string search = reader.required("name").string();
  const std::string problem = reader.required("problem").string();
  const std::string device = reader.required("device").string();
  const std::string tool = reader.required("tool").string();
  const std::vector<std::string> notes = reader.required("notes").strings();
  const std::string folder = path.parent_path().parent_path().filename().string();
  for (JsonReader& round : reader.required("rounds").array()) {
    const std::string candidate = round.required("candidate").string();
    const std::string kernel = round.required("kernel").string();
    json::array metrics = metric_columns(round.required("metrics"));
    if (auto error = reader.error()) return *error;
    json::object row =
        begin_row("profiles/" + folder + "/" + search + "/" + candidate + "/" + kernel, problem,
                  {json::serialize(metrics)});
    row["license"] = license;
    row["search"] = search;
    row["candidate"] = candidate;
    row["candidate_name"] = search + "/" + candidate;
    row["kernel"] = kernel;
    row["device"] = device;
    row["tool"] = tool;
    row["notes"] = json::value_from(notes);
    row["metrics"] = std::move(metrics);
    rows.put(config::profiles, split_of(problem), row);
  }
  if (auto error = reader.error()) return *error;
  return Ok{};
}

}  // namespace

Result<Ok> put_profile_rows(const fs::path& root, const std::string& license, RowStream& rows) {
  for (const fs::path& path : profiles(root)) {
    if (Result<Ok> put = put_profile(path, license, rows); !put) return put;
  }
  return Ok{};
}

}  // namespace rekernel
