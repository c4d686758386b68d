#include "harness/audit/mutants_page.h"

#include <algorithm>
#include <map>

#include "harness/base/files.h"
#include "harness/base/markdown.h"
#include "harness/problems/catalog.h"
#include "harness/records/report.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

bool passed(const ErrorRow& row) { return row.status == to_string(Status::passed); }

JudgeOutcome outcome(const std::string& id, const ErrorRow& row) {
  JudgeOutcome outcome;
  outcome.id = id;
  outcome.status = row.status;
  if (!passed(row)) outcome.caught_by = row.check.empty() ? row.status : row.check;
  outcome.message = row.message;
  return outcome;
}

/// Verdicts by id. What could not be judged on the device has none.
std::map<std::string, const ErrorRow*> verdicts(const ErrorsRecord& record, ErrorSource source) {
  std::map<std::string, const ErrorRow*> by_id;
  for (const ErrorRow& row : record.rows) {
    if (row.source == source && !row.status.empty()) by_id[row.problem + "/" + row.name] = &row;
  }
  return by_id;
}

struct Counts {
  int mutants = 0;
  int rejected = 0;       ///< caught with a status other than `passed`
  int badge_refused = 0;  ///< caught by the loss of a badge
  int honest = 0;
  int false_alarms = 0;
};

Counts count(const JudgeOutcomes& outcomes, const std::string& prefix) {
  Counts counts;
  for (const JudgeOutcome& one : outcomes.mutants) {
    if (!one.id.starts_with(prefix)) continue;
    ++counts.mutants;
    if (!one.as_it_must) continue;
    ++(one.status == to_string(Status::passed) ? counts.badge_refused : counts.rejected);
  }
  for (const JudgeOutcome& one : outcomes.honest) {
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

Table rate_table(const JudgeOutcomes& outcomes) {
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
    const Counts counts = count(outcomes, problem.id + "/");
    if (counts.mutants + counts.honest > 0) table.rows.push_back(row(problem.id, counts));
  }
  table.rows.push_back(row("all", count(outcomes, "")));
  return table;
}

Table check_table(const JudgeOutcomes& outcomes) {
  std::map<std::string, int> by_check;
  for (const JudgeOutcome& one : outcomes.mutants) {
    if (!one.as_it_must) continue;
    // What is said of a badge is ours and Markdown; the rest is the record's.
    const bool ours = one.status == to_string(Status::passed);
    ++by_check[ours ? one.caught_by : markdown_text(one.caught_by)];
  }
  std::vector<std::pair<std::string, int>> sorted(by_check.begin(), by_check.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table;
  table.columns = {{.heading = "caught by", .markdown = true},
                   {.heading = "mutants", .right_aligned = true}};
  for (const auto& [check, mutants] : sorted) {
    table.rows.push_back({check, std::to_string(mutants)});
  }
  return table;
}

}  // namespace

JudgeOutcome mutant_outcome(const Mutant& mutant, const ErrorRow& row) {
  JudgeOutcome result = outcome(mutant.id, row);
  result.as_it_must =
      std::any_of(mutant.expected.begin(), mutant.expected.end(),
                  [&](const Status status) { return row.status == to_string(status); });
  if (!passed(row)) return result;
  if (row.badges.has_any(mutant.refused_badges)) result.as_it_must = false;
  for (const std::string& badge : mutant.refused_badges.names()) {
    result.caught_by += (result.caught_by.empty() ? "no badge `" : ", `") + badge + "`";
  }
  return result;
}

JudgeOutcome honest_outcome(const HonestKernel& kernel, const ErrorRow& row) {
  JudgeOutcome result = outcome(kernel.id, row);
  result.as_it_must = passed(row) && row.badges.has_all(kernel.badges);
  return result;
}

JudgeOutcomes judge_outcomes(const fs::path& root, const ErrorsRecord& record) {
  JudgeOutcomes outcomes;
  const auto of_mutants = verdicts(record, ErrorSource::mutant);
  for (const Mutant& mutant : all_mutants(root)) {
    const auto row = of_mutants.find(mutant.id);
    if (row != of_mutants.end()) outcomes.mutants.push_back(mutant_outcome(mutant, *row->second));
  }
  const auto of_honest = verdicts(record, ErrorSource::honest);
  for (const HonestKernel& kernel : all_honest_kernels(root)) {
    const auto row = of_honest.find(kernel.id);
    if (row != of_honest.end()) outcomes.honest.push_back(honest_outcome(kernel, *row->second));
  }
  return outcomes;
}

std::string wrong_outcomes(const JudgeOutcomes& outcomes) {
  const auto item = [](const char* kind, const JudgeOutcome& one) {
    const std::string said = one.status + (one.message.empty() ? "" : ": " + one.message);
    return std::string("- ") + kind + " `" + one.id + "`: " + markdown_text(said) + "\n";
  };
  std::string text;
  for (const JudgeOutcome& one : outcomes.mutants) {
    if (!one.as_it_must) text += item("Not as required: mutant", one);
  }
  for (const JudgeOutcome& one : outcomes.honest) {
    if (!one.as_it_must) text += item("False alarm:", one);
  }
  return text;
}

Result<std::string> mutants_page(const fs::path& root) {
  const fs::path path = root / "tests" / "mutants" / "README.md";
  Result<std::string> page = read_file(path);
  if (!page) return page;
  std::string tables;
  for (const fs::path& recorded : recorded_errors(root)) {
    Result<ErrorsRecord> record = load_errors(recorded);
    if (!record) return record.error();
    const JudgeOutcomes outcomes = judge_outcomes(root, *record);
    if (outcomes.mutants.empty() && outcomes.honest.empty()) continue;
    const std::string wrong = wrong_outcomes(outcomes);
    tables += "\n" + markdown_text(caption(record->device_name, record->rows)) + ":\n\n" +
              to_markdown(rate_table(outcomes)) + "\n" + to_markdown(check_table(outcomes)) +
              (wrong.empty() ? "" : "\n" + wrong);
  }
  if (tables.empty()) tables = "\nNot measured yet.\n";
  Result<Ok> replaced = replace_section(*page, "mutants", tables + "\n", path);
  if (!replaced) return replaced.error();
  return page;
}

}  // namespace rekernel
