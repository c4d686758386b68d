#include "harness/dataset/fixture_rows.h"

#include <algorithm>
#include <boost/json.hpp>
#include <exception>
#include <map>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutant.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/dataset/modules.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// Every module that lies in the folder, whether or not a candidate may have it so.
Result<json::array> modules_of(const fs::path& folder) {
  json::array modules;
  std::error_code ignored;
  for (std::size_t i = 0; i < most_modules; ++i) {
    for (const Language language : {Language::cuda, Language::ptx, Language::cubin}) {
      const std::string file = code_file(language, i);
      if (!fs::is_regular_file(fs::symlink_status(folder / file, ignored))) continue;
      const Result<std::string> bytes = read_file(folder / file);
      if (!bytes) return bytes.error();
      modules.push_back(module_column(file, language, *bytes));
    }
  }
  return modules;
}

/// Of a plan that no reader takes, as far as it can be told.
std::string problem_in(const std::string& plan) {
  const Result<json::value> value = parse_json(plan, "kernel.json");
  if (!value || !value->is_object()) return "";
  const json::value* problem = value->get_object().if_contains("problem");
  const bool known = problem && problem->is_string() && find_problem(problem->get_string());
  return known ? std::string(problem->get_string()) : "";
}

Result<json::object> cheat_row(const fs::path& folder, const std::string& license) {
  const Result<Cheat> cheat = load_cheat(folder);
  if (!cheat) return cheat.error();
  const Result<std::string> plan = read_file(folder / "kernel.json");
  if (!plan) return plan.error();
  Result<json::array> modules = modules_of(folder);
  if (!modules) return modules.error();
  const bool plan_is_text = is_utf8(*plan) && plan->find('\0') == std::string::npos;
  json::object row = begin_row("cheats/" + folder.filename().string(), problem_in(*plan),
                               {*plan, json::serialize(*modules)});
  row["license"] = license;
  row["cheat"] = cheat->cheat;
  row["status"] = to_string(cheat->status);
  json::array& others = row["other_statuses"].emplace_array();
  for (const Status status : cheat->other_statuses) others.push_back(to_string(status));
  row["without_badges"] = json::value_from(cheat->without_badges.names());
  row["caught_by"] = cheat->caught_by;
  row["seen_at"] = cheat->source;
  if (plan_is_text) row["plan"] = *plan;
  if (!modules->empty() && modules->front().as_object().contains("text")) {
    row["code"] = modules->front().as_object().at("text");
  }
  row["modules"] = std::move(*modules);
  return row;
}

/// What was recorded of a mutant or an honest kernel, on each device.
class Outcomes {
 public:
  static Result<Outcomes> load(const fs::path& root) {
    Outcomes outcomes;
    for (const fs::path& path : recorded_errors(root)) {
      Result<ErrorsRecord> record = load_errors(path);
      if (!record) return record.error();
      for (ErrorRow& row : record->rows) {
        if (row.sha256.empty() || row.status.empty()) continue;
        outcomes.rows_[row.sha256].push_back({{"device", record->device_name},
                                              {"status", row.status},
                                              {"badges", json::value_from(row.badges.names())},
                                              {"check", row.check},
                                              {"message", row.message},
                                              {"measured", row.measured}});
      }
    }
    return outcomes;
  }
  /// A kernel that is both honest and committed was judged as each.
  json::array of(const std::string& sha256) const {
    json::array array;
    const auto found = rows_.find(sha256);
    if (found == rows_.end()) return array;
    for (const json::object& one : found->second) {
      if (std::find(array.begin(), array.end(), one) == array.end()) array.push_back(one);
    }
    return array;
  }

 private:
  std::map<std::string, std::vector<json::object>> rows_;
};

/// "softmax" of "softmax/row_on_chip/skips_the_tail".
std::string problem_of(const std::string& id) { return id.substr(0, id.find('/')); }

json::object kernel_row(const std::string& name, const std::string& license,
                        const Candidate& candidate, const Outcomes& outcomes) {
  const std::string sha256 = candidate_sha256(candidate);
  json::object row = begin_row(name, candidate.problem, {sha256});
  row["license"] = license;
  row["sha256"] = sha256;
  row["code"] = candidate.program.source;
  row["code_bytes"] = candidate.program.source.size();
  row["plan"] = candidate_json(candidate);
  row["outcomes"] = outcomes.of(sha256);
  return row;
}

Result<Ok> put_mutants(const fs::path& root, const std::string& license, const Outcomes& outcomes,
                       RowStream& rows) {
  for (const Mutant& mutant : all_mutants(root)) {
    const Result<Candidate> candidate = mutated_candidate(mutant);
    if (!candidate) return Error{mutant.id + ": " + candidate.error().message};
    json::object row = kernel_row("mutants/" + mutant.id, license, *candidate, outcomes);
    row["kind"] = "mutant";
    row["what"] = mutant.what;
    row["base"] = mutant.base.lexically_relative(root).string();
    json::array& changes = row["changes"].emplace_array();
    for (const auto& [before, after] : mutant.replacements) {
      changes.push_back({{"before", before}, {"after", after}});
    }
    if (!mutant.plan_patch.is_null()) row["plan_patch"] = json::serialize(mutant.plan_patch);
    json::array& expected = row["expected"].emplace_array();
    for (const Status status : mutant.expected) expected.push_back(to_string(status));
    row["refused_badges"] = json::value_from(mutant.refused_badges.names());
    rows.put(config::mutants, split_of(problem_of(mutant.id)), row);
  }
  return Ok{};
}

Result<Ok> put_honest(const fs::path& root, const std::string& license, const Outcomes& outcomes,
                      RowStream& rows) {
  for (const HonestKernel& kernel : all_honest_kernels(root)) {
    const Result<Candidate> candidate = load_candidate(kernel.folder);
    if (!candidate) return candidate.error();
    json::object row = kernel_row("honest/" + kernel.id, license, *candidate, outcomes);
    row["kind"] = "honest";
    row["what"] = candidate->idea;
    row["expected"] = json::array{to_string(Status::passed)};
    row["required_badges"] = json::value_from(kernel.badges.names());
    rows.put(config::mutants, split_of(candidate->problem), row);
  }
  return Ok{};
}

}  // namespace

Result<Ok> put_cheat_rows(const fs::path& root, const std::string& license, RowStream& rows) {
  const Result<std::vector<fs::path>> folders = cheat_folders(root);
  if (!folders) return folders.error();
  for (const fs::path& folder : *folders) {
    const Result<json::object> row = cheat_row(folder, license);
    if (!row) return row.error();
    rows.put(config::cheats, split_of(std::string(row->at("problem").as_string())), *row);
  }
  return Ok{};
}

Result<Ok> put_mutant_rows(const fs::path& root, const std::string& license, RowStream& rows) {
  const Result<Outcomes> outcomes = Outcomes::load(root);
  if (!outcomes) return outcomes.error();
  // These readers throw at the first file that is not as it must be.
  try {
    if (Result<Ok> put = put_mutants(root, license, *outcomes, rows); !put) return put;
    return put_honest(root, license, *outcomes, rows);
  } catch (const std::exception& error) {
    return Error{error.what()};
  }
}

}  // namespace rekernel
