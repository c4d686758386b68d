#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

/// A file of results/<gpu>/ with a row for each problem. A Row has its problem's id as `problem`.
template <class Row>
struct ProblemRecord {
  std::string device_name;
  std::string sm;
  std::map<std::string, std::string> toolchain;  ///< component → version
  std::vector<Row> rows;
};

template <class Row>
boost::json::object problem_record_json(const ProblemRecord<Row>& record,
                                        boost::json::object (*row_json)(const Row&)) {
  boost::json::array rows;
  for (const Row& row : record.rows) rows.push_back(row_json(row));
  return {{"schema", 1},
          {"device", {{"name", record.device_name}, {"sm", record.sm}}},
          {"toolchain", boost::json::value_from(record.toolchain)},
          {"rows", std::move(rows)}};
}

template <class Row>
Result<ProblemRecord<Row>> load_problem_record(const std::filesystem::path& path,
                                               Row (*read_row)(JsonReader)) {
  const Result<boost::json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  ProblemRecord<Row> record;
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

/// Replaces the rows of results/<gpu>/`file` that were measured again, adds new ones, keeps the
/// rest but for problems that there are no more, in the catalog's order; returns the path.
template <class Row>
Result<std::filesystem::path> merge_problem_record(const std::filesystem::path& root,
                                                   const char* file,
                                                   const ProblemRecord<Row>& measured,
                                                   boost::json::object (*row_json)(const Row&),
                                                   Row (*read_row)(JsonReader)) {
  const std::filesystem::path path = bench_path(root, measured.device_name).replace_filename(file);
  std::map<std::string, Row> rows;
  if (std::filesystem::exists(path)) {
    const Result<ProblemRecord<Row>> old = load_problem_record<Row>(path, read_row);
    if (!old) return old.error();
    for (const Row& row : old->rows) rows[row.problem] = row;
  }
  for (const Row& row : measured.rows) rows[row.problem] = row;
  ProblemRecord<Row> record = measured;
  record.rows.clear();
  for (const Problem& problem : catalog()) {
    const auto found = rows.find(problem.id);
    if (found != rows.end()) record.rows.push_back(found->second);
  }
  std::filesystem::create_directories(path.parent_path());
  const Result<Ok> written =
      write_file_atomically(path, pretty_json(problem_record_json(record, row_json)));
  if (!written) return written.error();
  return path;
}

}  // namespace rekernel
