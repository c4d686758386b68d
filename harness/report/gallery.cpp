// The judge's part of the report: the gallery of cheats, mutants and honest kernels, the verdicts
// and errors that are recorded of them, and the clock timed against itself.
#include <boost/json.hpp>
#include <exception>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutant.h"
#include "harness/audit/mutants_page.h"
#include "harness/candidate/code.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "harness/records/noise.h"
#include "harness/report/data.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// The first module's text, where it is text.
std::string source_of(const fs::path& folder, RecordComplaints& complaints) {
  std::error_code ignored;
  for (const Language language : {Language::ptx, Language::cubin}) {
    const fs::path path = folder / code_file(language);
    if (!fs::exists(fs::symlink_status(path, ignored))) continue;
    return language == Language::ptx ? text_for_report(path, complaints)
                                     : "(machine code: " + code_file(language) + ")\n";
  }
  return text_for_report(folder / code_file(Language::cuda), complaints);
}

json::array cheats_json(RecordComplaints& complaints) {
  json::array array;
  const Result<std::vector<fs::path>> folders = cheat_folders(complaints.root());
  if (!folders) {
    complaints.unreadable(complaints.root() / "tests" / "adversarial", folders.error().message);
    return array;
  }
  for (const fs::path& folder : *folders) {
    const Result<Cheat> cheat = load_cheat(folder);
    if (!cheat) {
      complaints.unreadable(folder / "expected.json", cheat.error().message);
      continue;
    }
    array.push_back({{"name", folder.filename().string()},
                     {"what", cheat->cheat},
                     {"status", to_string(cheat->status)},
                     {"caught_by", cheat->caught_by},
                     {"seen_at", cheat->source},
                     {"without_badges", to_json(cheat->without_badges)},
                     {"plan", text_for_report(folder / "kernel.json", complaints)},
                     {"source", source_of(folder, complaints)}});
  }
  return array;
}

/// "softmax" of "softmax/row_on_chip/skips_the_tail".
std::string problem_of(const std::string& id) { return id.substr(0, id.find('/')); }

json::array mutants_json(RecordComplaints& complaints) {
  json::array array;
  for (const Mutant& mutant : all_mutants(complaints.root())) {
    json::array changes;
    for (const auto& [before, after] : mutant.replacements) {
      changes.push_back({{"before", before}, {"after", after}});
    }
    json::array expected;
    for (const Status status : mutant.expected) expected.push_back(to_string(status));
    array.push_back({{"id", mutant.id},
                     {"problem", problem_of(mutant.id)},
                     {"what", mutant.what},
                     {"base", complaints.from_root(mutant.base)},
                     {"changes", std::move(changes)},
                     {"plan_change", mutant.plan_patch},
                     {"expected", std::move(expected)},
                     {"refused_badges", to_json(mutant.refused_badges)}});
  }
  return array;
}

json::array honest_json(RecordComplaints& complaints) {
  json::array array;
  for (const HonestKernel& kernel : all_honest_kernels(complaints.root())) {
    const Result<Candidate> candidate = load_candidate(kernel.folder);
    if (!candidate) {
      complaints.unreadable(kernel.folder, candidate.error().message);
      continue;
    }
    array.push_back({{"id", kernel.id},
                     {"problem", candidate->problem},
                     {"idea", candidate->idea},
                     {"badges", to_json(kernel.badges)},
                     {"plan", candidate_json(*candidate)},
                     {"source", candidate->program.source}});
  }
  return array;
}

/// These readers throw at the first file that is not as it must be: what they read is left out.
json::array or_complain(json::array (*read)(RecordComplaints&), const fs::path& folder,
                        RecordComplaints& complaints) {
  try {
    return read(complaints);
  } catch (const std::exception& error) {
    complaints.unreadable(folder, error.what());
    return {};
  }
}

json::array to_json(const std::vector<JudgeOutcome>& outcomes) {
  json::array array;
  for (const JudgeOutcome& one : outcomes) {
    array.push_back({{"id", one.id},
                     {"status", one.status},
                     {"caught_by", one.caught_by},
                     {"message", one.message},
                     {"as_it_must", one.as_it_must}});
  }
  return array;
}

/// Rows with errors, and their share of the bounds: what has none was not compared.
json::array errors_json(const ErrorsRecord& record) {
  json::array array;
  for (const ErrorRow& row : record.rows) {
    const Problem* problem = find_problem(row.problem);
    if (!row.errors || !problem) continue;
    array.push_back(
        {{"problem", row.problem},
         {"source", to_string(row.source)},
         {"name", row.name},
         {"sha256", row.sha256},
         {"status", row.status},
         {"rms", finite_or_null(row.errors->rms)},
         {"largest", finite_or_null(row.errors->largest)},
         {"tolerance", finite_or_null(row.errors->tolerance)},
         {"strict", finite_or_null(row.errors->strict)},
         {"share_of_bounds", finite_or_null(share_of_bounds(*row.errors, problem->tolerance))}});
  }
  return array;
}

}  // namespace

json::object report_gallery(RecordComplaints& complaints) {
  const fs::path tests = complaints.root() / "tests";
  return {{"cheats", cheats_json(complaints)},
          {"mutants", or_complain(mutants_json, tests / "mutants", complaints)},
          {"honest", or_complain(honest_json, tests / "honest", complaints)}};
}

json::value report_verdicts(const fs::path& folder, RecordComplaints& complaints) {
  const fs::path path = folder / "errors.json";
  if (std::error_code ignored; !fs::exists(path, ignored)) return nullptr;
  const Result<ErrorsRecord> record = load_errors(path);
  if (!record) {
    complaints.unreadable(path, record.error().message);
    return nullptr;
  }
  json::object verdicts{{"errors", errors_json(*record)}};
  try {
    const JudgeOutcomes outcomes = judge_outcomes(complaints.root(), *record);
    verdicts["mutants"] = to_json(outcomes.mutants);
    verdicts["honest"] = to_json(outcomes.honest);
  } catch (const std::exception&) {  // report_gallery names what cannot be read
    verdicts["mutants"] = json::array();
    verdicts["honest"] = json::array();
  }
  return verdicts;
}

json::array report_noise(const fs::path& folder, RecordComplaints& complaints) {
  json::array array;
  const fs::path path = folder / "noise.json";
  if (std::error_code ignored; !fs::exists(path, ignored)) return array;
  const Result<NoiseRecord> record = load_noise(path);
  if (!record) {
    complaints.unreadable(path, record.error().message);
    return array;
  }
  for (const NoiseRow& row : record->rows) {
    json::array intervals;
    for (const NoiseRun& run : row.runs) {
      const Percent percent = percent_of_reference(run.first_ns, run.second_ns);
      intervals.push_back({{"value", percent.value}, {"low", percent.low}, {"high", percent.high}});
    }
    const NoiseSummary summary = summarise(row);
    array.push_back({{"problem", row.problem},
                     {"subject", row.subject},
                     {"sha256", row.sha256},
                     {"details", row.details},
                     {"measured", row.measured},
                     {"runs", summary.runs},
                     {"samples", summary.samples},
                     {"containing_one", summary.containing_one},
                     {"median_half_width", summary.median_half_width},
                     {"largest_half_width", summary.largest_half_width},
                     {"median_ns", summary.median_ns},
                     {"holds", summary.holds()},
                     {"intervals", std::move(intervals)}});
  }
  return array;
}

}  // namespace rekernel
