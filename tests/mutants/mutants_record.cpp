#include "tests/mutants/mutants_record.h"

#include <algorithm>
#include <map>

#include "harness/files.h"
#include "harness/json.h"
#include "harness/record.h"
#include "harness/report.h"
#include "ops/catalog.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

bool contains(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

/// The name of the check that a rejection's message comes from.
std::string rejecting_check(const Evaluation& evaluation) {
  if (evaluation.status != Status::wrong_result) return to_string(evaluation.status);
  const std::string& message = evaluation.message;
  const std::string when = contains(message, "(in a timed run)") ? " in a timed run" : "";
  if (contains(message, "were never written")) return "unwritten elements" + when;
  if (contains(message, "outside the tolerance")) return "tolerance of an element" + when;
  if (message.starts_with("rms error")) return "rms error" + when;
  if (message.starts_with("largest error")) return "largest error" + when;
  return message.substr(0, message.find(": violated")) + when;
}

Outcome outcome(const std::string& id, const Evaluation& evaluation) {
  Outcome outcome;
  outcome.id = id;
  outcome.sha256 = evaluation.sha256;
  outcome.status = to_string(evaluation.status);
  outcome.badges = evaluation.badges();
  const bool passed = evaluation.status == Status::passed;
  if (!passed) outcome.caught_by = rejecting_check(evaluation);
  outcome.message = passed ? evaluation.badge_notes : evaluation.message;
  return outcome;
}

boost::json::array to_json(const std::vector<Outcome>& outcomes) {
  boost::json::array array;
  for (const Outcome& one : outcomes) {
    array.push_back({{"id", one.id},
                     {"sha256", one.sha256},
                     {"status", one.status},
                     {"badges", boost::json::array(one.badges.begin(), one.badges.end())},
                     {"caught_by", one.caught_by},
                     {"message", one.message},
                     {"as_it_must", one.as_it_must}});
  }
  return array;
}

std::vector<Outcome> read_outcomes(JsonReader reader) {
  std::vector<Outcome> outcomes;
  for (JsonReader& row : reader.array()) {
    Outcome one;
    one.id = row.required("id").string();
    one.sha256 = row.required("sha256").string();
    one.status = row.required("status").string();
    for (JsonReader& badge : row.required("badges").array()) one.badges.push_back(badge.string());
    one.caught_by = row.required("caught_by").string();
    one.message = row.required("message").string();
    one.as_it_must = row.required("as_it_must").boolean();
    row.no_other_keys();
    outcomes.push_back(std::move(one));
  }
  return outcomes;
}

/// One outcome for each thing that exists, in its order: the new one, else the one of before.
template <class Thing>
std::vector<Outcome> merged(const std::vector<Thing>& things, const std::vector<Outcome>& before,
                            const std::vector<Outcome>& measured) {
  std::map<std::string, const Outcome*> by_id;
  for (const Outcome& one : before) by_id[one.id] = &one;
  for (const Outcome& one : measured) by_id[one.id] = &one;
  std::vector<Outcome> result;
  for (const Thing& thing : things) {
    if (auto found = by_id.find(thing.id); found != by_id.end()) result.push_back(*found->second);
  }
  return result;
}

struct Counts {
  int mutants = 0;
  int rejected = 0;       ///< caught with a status other than `passed`
  int badge_refused = 0;  ///< caught by the loss of a badge
  int honest = 0;
  int false_alarms = 0;
};

Counts count(const MutantsRecord& record, const std::string& prefix) {
  Counts counts;
  for (const Outcome& one : record.mutants) {
    if (!one.id.starts_with(prefix)) continue;
    ++counts.mutants;
    if (!one.as_it_must) continue;
    ++(one.status == to_string(Status::passed) ? counts.badge_refused : counts.rejected);
  }
  for (const Outcome& one : record.honest) {
    if (!one.id.starts_with(prefix)) continue;
    ++counts.honest;
    if (!one.as_it_must) ++counts.false_alarms;
  }
  return counts;
}

std::string share(int part, int whole) {
  return whole == 0 ? "–" : percent_text(100.0 * part / whole);
}

std::vector<std::string> row(const std::string& name, const Counts& counts) {
  return {name,
          std::to_string(counts.mutants),
          std::to_string(counts.rejected),
          std::to_string(counts.badge_refused),
          share(counts.rejected + counts.badge_refused, counts.mutants),
          std::to_string(counts.honest),
          std::to_string(counts.false_alarms),
          share(counts.false_alarms, counts.honest)};
}

Table problem_table(const MutantsRecord& record) {
  Table table;
  table.columns = {{"problem"},
                   {"mutants", true},
                   {"rejected", true},
                   {"badge refused", true},
                   {"catch rate", true},
                   {"honest kernels", true},
                   {"false alarms", true},
                   {"false-alarm rate", true}};
  for (const Problem& problem : catalog()) {
    const Counts counts = count(record, problem.id + "/");
    if (counts.mutants + counts.honest > 0) table.rows.push_back(row(problem.id, counts));
  }
  table.rows.push_back(row("all", count(record, "")));
  return table;
}

Table check_table(const MutantsRecord& record) {
  std::map<std::string, int> by_check;
  for (const Outcome& one : record.mutants) {
    if (one.as_it_must) ++by_check[one.caught_by];
  }
  std::vector<std::pair<std::string, int>> sorted(by_check.begin(), by_check.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table;
  table.columns = {{"caught by"}, {"mutants", true}};
  for (const auto& [check, mutants] : sorted) {
    table.rows.push_back({check, std::to_string(mutants)});
  }
  return table;
}

std::string exceptions(const MutantsRecord& record) {
  std::string text;
  for (const Outcome& one : record.mutants) {
    if (!one.as_it_must)
      text += "- Not as it must be: mutant `" + one.id + "`: " + one.status + "\n";
  }
  for (const Outcome& one : record.honest) {
    if (!one.as_it_must) {
      text += "- False alarm: `" + one.id + "`: " + one.status + ": " + one.message + "\n";
    }
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

Outcome mutant_outcome(const Mutant& mutant, const Evaluation& evaluation) {
  Outcome result = outcome(mutant.id, evaluation);
  const auto& expected = mutant.expected;
  result.as_it_must =
      std::find(expected.begin(), expected.end(), evaluation.status) != expected.end();
  if (evaluation.status != Status::passed) return result;
  for (const std::string& badge : mutant.refused_badges) {
    if (contains(result.badges, badge)) result.as_it_must = false;
    result.caught_by += (result.caught_by.empty() ? "no badge `" : ", `") + badge + "`";
  }
  return result;
}

Outcome honest_outcome(const HonestKernel& kernel, const Evaluation& evaluation) {
  Outcome result = outcome(kernel.id, evaluation);
  result.as_it_must = evaluation.status == Status::passed;
  for (const std::string& badge : kernel.badges) {
    if (!contains(result.badges, badge)) result.as_it_must = false;
  }
  return result;
}

fs::path mutants_record_path(const fs::path& root, const std::string& device_name) {
  return bench_path(root, device_name).replace_filename("mutants.json");
}

std::vector<fs::path> recorded_mutants(const fs::path& root) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(root / "results")) {
    if (fs::exists(entry.path() / "mutants.json")) paths.push_back(entry.path() / "mutants.json");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<MutantsRecord> load_mutants_record(const fs::path& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text.error();
  Result<boost::json::value> json = parse_json(*text, path.string());
  if (!json) return json.error();
  JsonReader reader(path.string(), *json);
  MutantsRecord record;
  reader.required("schema").integer(1, 1);
  record.device_name = reader.required("device").string();
  record.mutants = read_outcomes(reader.required("mutants"));
  record.honest = read_outcomes(reader.required("honest"));
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return record;
}

Result<Ok> update_mutants_record(const fs::path& root, const MutantsRecord& measured) {
  const fs::path path = mutants_record_path(root, measured.device_name);
  MutantsRecord before;
  if (fs::exists(path)) {
    Result<MutantsRecord> loaded = load_mutants_record(path);
    if (!loaded) return loaded.error();
    before = std::move(*loaded);
  }
  const boost::json::object json{
      {"schema", 1},
      {"device", measured.device_name},
      {"mutants", to_json(merged(all_mutants(root), before.mutants, measured.mutants))},
      {"honest", to_json(merged(all_honest_kernels(root), before.honest, measured.honest))}};
  fs::create_directories(path.parent_path());
  return write_file_atomically(path, pretty_json(json));
}

Result<std::string> generated_page(const fs::path& root) {
  const fs::path path = root / "tests/mutants/README.md";
  Result<std::string> page = read_file(path);
  if (!page) return page;
  std::string tables;
  for (const fs::path& recorded : recorded_mutants(root)) {
    Result<MutantsRecord> record = load_mutants_record(recorded);
    if (!record) return record.error();
    tables += "\n" + record->device_name + ":\n\n" + to_markdown(problem_table(*record)) + "\n" +
              to_markdown(check_table(*record)) + exceptions(*record);
  }
  if (tables.empty()) tables = "\nNot measured yet.\n";
  Result<Ok> replaced = replace_section(*page, "mutants", tables + "\n", path);
  if (!replaced) return replaced.error();
  return page;
}

}  // namespace rekernel
