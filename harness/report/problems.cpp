// What the report says of each problem: its definition, its bounds, and what is recorded of both.

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/base/judging_sources.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/definitions.h"
#include "harness/records/made_mutants.h"
#include "harness/records/published.h"
#include "harness/report/data.h"
#include "harness/report/tensor_json.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

json::array tensors_json(const Problem& problem) {
  json::array tensors;
  for (const Tensor& tensor : problem.tensors) {
    json::object one = tensor_json(tensor);
    one["bytes"] = tensor.bytes();
    tensors.push_back(std::move(one));
  }
  return tensors;
}

json::array stress_names(const Problem& problem) {
  json::array names;
  for (const StressCase& one : problem.stress_cases) names.push_back(json::string(one.name));
  return names;
}

json::object published_json(const PublishedFigures& figures) {
  json::object there;
  if (figures.percent_of_pytorch_eager) there["pytorch_eager"] = *figures.percent_of_pytorch_eager;
  if (figures.percent_of_torch_compile) {
    there["pytorch_compile"] = *figures.percent_of_torch_compile;
  }
  if (!figures.note.empty()) there["note"] = figures.note;
  return there;
}

json::object problem_json(const Problem& problem) {
  json::object one{{"id", problem.id},
                   {"group", problem.group},
                   {"title", problem.title},
                   {"definition", json::value_from(problem.formula)},
                   {"pytorch", problem.pytorch},
                   {"file", problem.text},
                   {"tensors", tensors_json(problem)},
                   {"stress", stress_names(problem)},
                   {"min_bytes", problem.min_bytes},
                   {"operations", problem.operations},
                   {"matrix_products", problem.matrix_products},
                   {"libraries", json::value_from(library_reference_ids(problem.id))},
                   {"tolerance",
                    {{"absolute", problem.tolerance.absolute},
                     {"relative", problem.tolerance.relative},
                     {"rms", problem.tolerance.rms_error_over_rms},
                     {"largest", problem.tolerance.max_error_over_rms}}}};
  if (!problem.source.benchmark.empty()) {
    one["source"] = {{"benchmark", problem.source.benchmark}, {"number", problem.source.number}};
  }
  return one;
}

/// A record's rows, each with whether it is of the problem's file as it is now.
json::array rows_with_their_state(json::object record) {
  json::array rows = std::move(record["rows"].as_array());
  for (json::value& row : rows) {
    const Problem* problem = find_problem(row.at("problem").as_string());
    row.as_object()["of_the_present_file"] =
        problem != nullptr && row.at("digest").as_string() == problem_digest(problem->text);
  }
  return rows;
}

template <class Record>
json::array recorded_rows(const fs::path& path, Result<Record> (*load)(const fs::path&),
                          RecordComplaints& complaints) {
  if (std::error_code ignored; !fs::exists(path, ignored)) return {};
  const Result<Record> record = load(path);
  if (record) return rows_with_their_state(to_json(*record));
  complaints.unreadable(path, record.error().message);
  return {};
}

}  // namespace

json::array report_problems(const Published* published, const std::set<std::string>& with_kernels) {
  json::array problems;
  for (const Problem& problem : catalog()) {
    json::object one = problem_json(problem);
    one["in_charts"] = problem.group == published_group || with_kernels.contains(problem.id);
    if (published) {
      const auto figures = published->figures.find(problem.id);
      if (figures != published->figures.end()) one["published"] = published_json(figures->second);
    }
    problems.push_back(std::move(one));
  }
  return problems;
}

json::object report_problem_records(const fs::path& folder, RecordComplaints& complaints) {
  return {{"definitions", recorded_rows(folder / "definitions.json", load_definitions, complaints)},
          {"mutants", recorded_rows(folder / "made_mutants.json", load_made_mutants, complaints)}};
}

}  // namespace rekernel
