#include "harness/audit/errors.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "harness/audit/mutant.h"
#include "harness/base/files.h"
#include "harness/base/json_fields.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::pair<ErrorSource, const char*>, 5> source_names{{
    {ErrorSource::library, "library"},
    {ErrorSource::committed, "committed"},
    {ErrorSource::scaffold, "scaffold"},
    {ErrorSource::honest, "honest"},
    {ErrorSource::mutant, "mutant"},
}};

std::optional<ErrorSource> find_source(std::string_view text) {
  for (const auto& [source, name] : source_names) {
    if (text == name) return source;
  }
  return std::nullopt;
}

namespace errors_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

/// Infinity and NaN, which a wrong kernel gives, are text too.
constexpr NumberText recorded{"%.3e"};

constexpr std::tuple relative_fields{field("rms", &RelativeErrors::rms, recorded),
                                     field("largest", &RelativeErrors::largest, recorded),
                                     field("tolerance", &RelativeErrors::tolerance, recorded),
                                     field("strict", &RelativeErrors::strict, recorded)};

constexpr std::tuple row_fields{
    field("problem", &ErrorRow::problem, text),
    field("source", &ErrorRow::source,
          Named<ErrorSource>{to_string, find_source,
                             "library, committed, scaffold, honest or mutant"}),
    field("name", &ErrorRow::name, text),
    field("sha256", &ErrorRow::sha256, text),
    field("what", &ErrorRow::what, text),
    field("measured", &ErrorRow::measured, text),
    field("status", &ErrorRow::status, text),
    field("badges", &ErrorRow::badges, By{&badges_from_json}),
    field("message", &ErrorRow::message, text),
    field("check", &ErrorRow::check, text),
    field("errors", &ErrorRow::errors, Nested{relative_fields}, unless_empty)};

constexpr std::tuple record_fields{schema(2), field("device", &ErrorsRecord::device_name, text),
                                   field("toolchain", &ErrorsRecord::toolchain, TextMap{}),
                                   field("rows", &ErrorsRecord::rows, List{Nested{row_fields}})};

}  // namespace errors_json

std::string shown(double value) { return printed("%.2g", value); }

/// The verdict in a table: for a library, which is not judged, what its errors would get.
std::string verdict(const ErrorRow& row, double share) {
  if (row.source == ErrorSource::library) return share <= 1.0 ? "within" : "outside";
  std::string text = row.status;
  if (!row.badges.empty()) text += ": " + joined(row.badges.names());
  // Where the values are within the bounds, something else has spoken.
  if (share <= 1.0 && !row.message.empty() &&
      (row.status != to_string(Status::passed) || row.source == ErrorSource::mutant)) {
    text += " (" + row.message + ")";
  }
  return text;
}

std::vector<std::string> bound_cells(const Tolerance& tolerance) {
  return {"**the bounds**",
          "",
          "**" + shown(tolerance.rms_error_over_rms) + "**",
          "**" + shown(tolerance.max_error_over_rms) + "**",
          "**1**",
          "",
          "**1**",
          ""};
}

void add_folder(std::vector<ErrorSubject>& subjects, ErrorSource source, Candidate candidate) {
  ErrorSubject subject;
  subject.source = source;
  subject.name = candidate.name;
  subject.candidate = std::move(candidate);
  subjects.push_back(std::move(subject));
}

/// What there is to measure, by what a complaint calls it.
struct PresentSubjects {
  std::map<std::string, std::string> sha256;
  /// By problem, the mutants and honest kernels: the judge's rates are rates of all of them.
  std::map<std::string, std::vector<std::string>> judged;
};

bool is_of(const ErrorRow& row, const ErrorSubject& subject) {
  return row.problem == subject.candidate.problem && row.source == subject.source &&
         row.name == subject.name;
}

std::string subject_name(const std::string& problem, ErrorSource source, const std::string& name) {
  return problem + ", " + to_string(source) + " " + name;
}

Result<PresentSubjects> present_subjects(const fs::path& root) {
  PresentSubjects present;
  for (const Problem& problem : published_problems()) {
    Result<std::vector<ErrorSubject>> subjects = error_subjects(root, problem);
    if (!subjects) return subjects.error();
    for (const ErrorSubject& subject : *subjects) {
      const std::string name = subject_name(problem.id, subject.source, subject.name);
      present.sha256[name] = candidate_sha256(subject.candidate);
      if (subject.source == ErrorSource::honest || subject.source == ErrorSource::mutant) {
        present.judged[problem.id].push_back(name);
      }
    }
  }
  return present;
}

void add_stale_rows(const ErrorsRecord& record, PresentSubjects& present, const std::string& where,
                    std::vector<std::string>& complaints) {
  const auto complain = [&](const std::string& name, const char* what, const std::string& problem) {
    complaints.push_back(where + ": " + name + what + "; run `rekernel errors " + problem +
                         " --missing --record`");
  };
  std::set<std::string> problems;
  std::set<std::string> measured;
  for (const ErrorRow& row : record.rows) {
    problems.insert(row.problem);
    if (row.source == ErrorSource::library) continue;
    const std::string name = subject_name(row.problem, row.source, row.name);
    measured.insert(name);
    if (present.sha256[name] != row.sha256) {
      complain(name, " is not what was measured", row.problem);
    }
  }
  for (const std::string& problem : problems) {
    for (const std::string& name : present.judged[problem]) {
      if (!measured.contains(name)) complain(name, " was not measured", problem);
    }
  }
}

}  // namespace

const char* to_string(ErrorSource source) {
  return source_names[static_cast<std::size_t>(source)].second;
}

RelativeErrors relative_errors(const ErrorStats& stats) {
  RelativeErrors errors;
  errors.rms = stats.rms / stats.truth_rms;
  errors.largest = stats.max_abs / stats.truth_rms;
  errors.tolerance = stats.worst_tolerance_ratio;
  errors.strict = stats.worst_strict_ratio;
  return errors;
}

Result<std::vector<ErrorSubject>> error_subjects(const fs::path& root, const Problem& problem) {
  std::vector<ErrorSubject> subjects;
  add_folder(subjects, ErrorSource::scaffold, scaffold_candidate(problem, "scaffold"));
  Result<std::vector<fs::path>> folders = candidate_directories(root);
  if (!folders) return folders.error();
  for (const fs::path& folder : *folders) {
    if (folder.parent_path().filename() != problem.id) continue;
    Result<Candidate> candidate = load_candidate(folder);
    if (!candidate) return candidate.error();
    add_folder(subjects, ErrorSource::committed, std::move(*candidate));
  }
  for (const HonestKernel& kernel : all_honest_kernels(root)) {
    if (!kernel.id.starts_with(problem.id + "/")) continue;
    Result<Candidate> candidate = load_candidate(kernel.folder);
    if (!candidate) return candidate.error();
    add_folder(subjects, ErrorSource::honest, std::move(*candidate));
  }
  for (const Mutant& mutant : all_mutants(root)) {
    if (!mutant.id.starts_with(problem.id + "/")) continue;
    Result<Candidate> candidate = mutated_candidate(mutant);
    if (!candidate) return Error{mutant.id + ": " + candidate.error().message};
    subjects.push_back({ErrorSource::mutant, mutant.id.substr(problem.id.size() + 1), mutant.what,
                        std::move(*candidate)});
  }
  return subjects;
}

std::vector<ErrorRow> error_rows(const ErrorSubject& subject, const Evaluation& evaluation) {
  std::vector<ErrorRow> rows;
  ErrorRow row;
  row.problem = evaluation.problem;
  row.source = subject.source;
  row.name = subject.name;
  row.sha256 = evaluation.sha256;
  row.what = subject.what;
  row.status = to_string(evaluation.status);
  row.badges = evaluation.earned_badges();
  row.message = evaluation.message.empty() ? evaluation.badge_notes : evaluation.message;
  row.check = evaluation.check;
  if (evaluation.errors) row.errors = relative_errors(*evaluation.errors);
  rows.push_back(std::move(row));
  for (const ReferenceResult& reference : evaluation.references) {
    ErrorRow library;
    library.problem = evaluation.problem;
    library.name = reference.id;
    library.message = reference.unavailable;
    if (reference.errors) library.errors = relative_errors(*reference.errors);
    rows.push_back(std::move(library));
  }
  return rows;
}

std::vector<ErrorSubject> without_rows(std::vector<ErrorSubject> subjects,
                                       const ErrorsRecord& record) {
  std::erase_if(subjects, [&](const ErrorSubject& subject) {
    const std::string sha256 = candidate_sha256(subject.candidate);
    return std::any_of(record.rows.begin(), record.rows.end(), [&](const ErrorRow& row) {
      return is_of(row, subject) && row.sha256 == sha256;
    });
  });
  return subjects;
}

ErrorsRecord completed(const ErrorsRecord& measured, const ErrorsRecord& old,
                       const std::vector<ErrorSubject>& subjects) {
  ErrorsRecord record = measured;
  record.rows.clear();
  const auto take = [&record](const std::vector<ErrorRow>& rows, const auto& wanted) {
    const std::size_t before = record.rows.size();
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(record.rows), wanted);
    return record.rows.size() > before;
  };
  std::set<std::string> problems;  // whose libraries' rows are there
  for (const ErrorSubject& subject : subjects) {
    const auto own = [&](const ErrorRow& row) { return is_of(row, subject); };
    if (!take(measured.rows, own)) take(old.rows, own);
    const std::string& problem = subject.candidate.problem;
    if (!problems.insert(problem).second) continue;
    const auto library = [&](const ErrorRow& row) {
      return row.source == ErrorSource::library && row.problem == problem;
    };
    if (!take(measured.rows, library)) take(old.rows, library);
  }
  return record;
}

std::string caption(const std::string& device_name, const std::vector<ErrorRow>& rows) {
  const auto [first, last] = std::minmax_element(
      rows.begin(), rows.end(),
      [](const ErrorRow& a, const ErrorRow& b) { return a.measured < b.measured; });
  std::string text = device_name;
  if (first == rows.end()) return text;
  text += ", " + first->measured;
  if (first->measured != last->measured) text += " to " + last->measured;
  return text;
}

double share_of_bounds(const RelativeErrors& errors, const Tolerance& tolerance) {
  double share = 0.0;
  for (const double one : {errors.rms / tolerance.rms_error_over_rms,
                           errors.largest / tolerance.max_error_over_rms, errors.tolerance}) {
    // NaN is outside every bound.
    if (!(one <= share)) share = std::isnan(one) ? std::numeric_limits<double>::infinity() : one;
  }
  return share;
}

boost::json::object to_json(const ErrorsRecord& record) {
  return object_of(record, errors_json::record_fields);
}

Result<ErrorsRecord> errors_from_json(const boost::json::value& json, const std::string& where) {
  JsonReader reader(where, json);
  ErrorsRecord record = read_object<ErrorsRecord>(reader, errors_json::record_fields);
  if (auto error = reader.error()) return *error;
  return record;
}

Result<ErrorsRecord> load_errors(const fs::path& path) {
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();
  return errors_from_json(*json, path.string());
}

fs::path errors_path(const fs::path& root, const std::string& device_name) {
  return bench_path(root, device_name).replace_filename("errors.json");
}

Result<fs::path> record_errors(const fs::path& root, const ErrorsRecord& measured) {
  const fs::path path = errors_path(root, measured.device_name);
  ErrorsRecord old;
  if (fs::exists(path)) {
    Result<ErrorsRecord> loaded = load_errors(path);
    if (!loaded) return loaded.error();
    old = std::move(*loaded);
  }
  std::set<std::string> remeasured;
  for (const ErrorRow& row : measured.rows) remeasured.insert(row.problem);
  ErrorsRecord record = measured;
  record.rows.clear();
  for (const Problem& problem : catalog()) {
    const auto& rows = remeasured.contains(problem.id) ? measured.rows : old.rows;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(record.rows),
                 [&](const ErrorRow& row) { return row.problem == problem.id; });
  }
  fs::create_directories(path.parent_path());
  Result<Ok> written = write_file_atomically(path, pretty_json(to_json(record)));
  if (!written) return written.error();
  return path;
}

std::vector<fs::path> recorded_errors(const fs::path& root) {
  return recorded_files(root, "errors.json");
}

Table error_table(const ErrorsRecord& record, const Problem& problem) {
  Table table;
  table.columns = {
      {.heading = "implementation", .wraps = true},
      {.heading = "kind", .rank = 1},
      {.heading = "‖err‖/‖truth‖", .right_aligned = true, .short_heading = "rms"},
      {.heading = "max err/rms(truth)", .right_aligned = true, .short_heading = "max"},
      {.heading = "of 1e-2 + 1e-2·truth", .right_aligned = true, .short_heading = "of 1e-2"},
      {.heading = "of 1e-4 + 1e-4·truth", .right_aligned = true, .short_heading = "of 1e-4"},
      {.heading = "of the bounds", .right_aligned = true, .short_heading = "of bounds"},
      {.heading = "verdict", .wraps = true}};
  std::vector<std::pair<double, const ErrorRow*>> sorted;
  std::vector<const ErrorRow*> without_errors;
  for (const ErrorRow& row : record.rows) {
    if (row.problem != problem.id) continue;
    if (row.errors) {
      sorted.emplace_back(share_of_bounds(*row.errors, problem.tolerance), &row);
    } else {
      without_errors.push_back(&row);
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  bool drawn = false;
  const auto draw_bound = [&] {
    if (!drawn) table.rows.push_back(bound_cells(problem.tolerance));
    drawn = true;
  };
  for (const auto& [share, row] : sorted) {
    if (share > 1.0) draw_bound();
    const RelativeErrors& errors = *row->errors;
    table.rows.push_back({row->name + (row->what.empty() ? "" : ": " + row->what),
                          to_string(row->source), shown(errors.rms), shown(errors.largest),
                          shown(errors.tolerance), shown(errors.strict), shown(share),
                          verdict(*row, share)});
  }
  draw_bound();
  for (const ErrorRow* row : without_errors) {
    const std::string said = row->status + (row->status.empty() ? "" : ": ") + row->message;
    table.rows.push_back({row->name + (row->what.empty() ? "" : ": " + row->what),
                          to_string(row->source), "–", "–", "–", "–", "–", said});
  }
  return table;
}

Result<std::string> tolerances_page(const fs::path& root) {
  const fs::path path = root / "ops" / "TOLERANCES.md";
  Result<std::string> page = read_file(path);
  if (!page) return page.error();
  for (const Problem& problem : published_problems()) {
    std::string tables;
    for (const fs::path& recorded_path : recorded_errors(root)) {
      Result<ErrorsRecord> record = load_errors(recorded_path);
      if (!record) return record.error();
      std::erase_if(record->rows, [&](const ErrorRow& row) { return row.problem != problem.id; });
      if (record->rows.empty()) continue;
      tables += "\n" + to_markdown(error_table(*record, problem)) + "\n" +
                markdown_text(caption(record->device_name, record->rows)) + ".\n";
    }
    if (tables.empty()) tables = "\nNot measured yet.\n";
    Result<Ok> replaced = replace_section(*page, problem.id, tables + "\n", path);
    if (!replaced) return replaced.error();
  }
  return page;
}

Result<std::vector<std::string>> stale_errors(const fs::path& root) {
  std::vector<std::string> complaints;
  const std::vector<fs::path> paths = recorded_errors(root);
  if (paths.empty()) return complaints;
  Result<PresentSubjects> present = present_subjects(root);
  if (!present) return present.error();
  for (const fs::path& path : paths) {
    Result<ErrorsRecord> record = load_errors(path);
    if (!record) return record.error();
    add_stale_rows(*record, *present, fs::relative(path, root).string(), complaints);
  }
  return complaints;
}

}  // namespace rekernel
