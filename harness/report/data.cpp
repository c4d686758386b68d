#include "harness/report/data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/problems/catalog.h"
#include "harness/project/compile_all.h"
#include "harness/project/recorded.h"
#include "harness/records/known_devices.h"
#include "harness/records/published.h"
#include "harness/records/record.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "replay/report/metrics.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

json::object to_json(const Published& published) {
  json::object result{{"authors", published.authors},     {"title", published.title},
                      {"publisher", published.publisher}, {"date", published.date},
                      {"device", published.device},       {"meaning", published.meaning}};
  if (published.searches) {
    result["searches"] = {
        {"problems", published.searches->problems},
        {"rounds", published.searches->rounds},
        {"models", json::value_from(published.searches->models)},
        {"prompt_tokens", published.searches->prompt_tokens},
        {"completion_tokens", published.searches->completion_tokens},
        {"best_found_in_rounds", json::value_from(published.searches->best_found_in_rounds)}};
  }
  return result;
}

std::vector<Candidate> readable_candidates(RecordComplaints& complaints) {
  std::vector<Candidate> candidates;
  const fs::path generated = complaints.root() / "generated";
  Result<std::vector<fs::path>> folders = candidate_directories(complaints.root());
  if (!folders) {
    complaints.unreadable(generated, folders.error().message);
    return candidates;
  }
  for (const fs::path& folder : *folders) {
    Result<Candidate> candidate = load_candidate(folder);
    if (candidate) {
      candidates.push_back(std::move(*candidate));
    } else {
      complaints.unreadable(folder, candidate.error().message);
    }
  }
  return candidates;
}

json::object kernel_json(const Candidate& candidate) {
  return {{"problem", candidate.problem},
          {"name", candidate.name},
          {"idea", candidate.idea},
          {"arch", to_string(candidate.arch)},
          {"sha256", candidate_sha256(candidate)},
          {"origin",
           {{"trajectory", candidate.origin.trajectory},
            {"candidate", candidate.origin.candidate},
            {"note", candidate.origin.note}}},
          {"plan", json::parse(candidate_json(candidate))},
          {"source", candidate.program.source}};
}

/// By "problem/kernel".
using RowsByKernel = std::map<std::string, std::vector<json::object*>>;

RowsByKernel rows_by_kernel(json::array& devices) {
  RowsByKernel rows;
  for (json::value& device : devices) {
    if (!device.get_object().contains("rows")) continue;
    for (json::value& row : device.at("rows").as_array()) {
      const std::string name = std::string(row.at("problem").as_string()) + "/" +
                               std::string(row.at("kernel").as_string());
      rows[name].push_back(&row.get_object());
    }
  }
  return rows;
}

/// Says of every row whether it is of the kernel as it is now, and complains of kernels without a
/// row and rows without a kernel.
void compare_with_kernels(const RowsByKernel& rows, const std::vector<Candidate>& candidates,
                          RecordComplaints& complaints) {
  std::set<std::string> known;
  for (const Candidate& candidate : candidates) {
    const std::string name = candidate.problem + "/" + candidate.name;
    const fs::path folder = complaints.root() / "generated" / candidate.problem / candidate.name;
    known.insert(name);
    const auto found = rows.find(name);
    if (found == rows.end()) {
      complaints.missing(folder, "no time is recorded for this kernel");
      continue;
    }
    const std::string sha256 = candidate_sha256(candidate);
    for (json::object* row : found->second) {
      const bool present = row->at("sha256").as_string() == sha256;
      (*row)["of_the_present_kernel"] = present;
      if (!present) complaints.missing(folder, "a recorded time is of an earlier version of it");
    }
  }
  for (const auto& [name, of_it] : rows) {
    if (!known.contains(name)) {
      complaints.missing(complaints.root() / "generated" / name,
                         "times are recorded for this kernel, which cannot be read here");
    }
  }
}

/// "trajectories/softmax.jsonl r4.i2.b1" of the candidates whose resources their search recorded.
std::set<std::string> candidates_with_resources(const json::array& searches) {
  std::set<std::string> names;
  for (const json::value& search : searches) {
    for (const json::value& candidate : search.at("candidates").as_array()) {
      if (!candidate.as_object().contains("resources")) continue;
      names.insert(std::string(search.at("file").as_string()) + " " +
                   std::string(candidate.at("id").as_string()));
    }
  }
  return names;
}

/// What the compiler says of measured kernels of which no record does. Nothing, without a word,
/// where there is no compiler.
void add_compiled_resources(json::array& kernels, const std::vector<Candidate>& candidates,
                            const RowsByKernel& rows, const json::array& searches) {
  const std::set<std::string> recorded = candidates_with_resources(searches);
  std::vector<CompileJob> jobs;
  std::vector<std::size_t> kernel_of_job;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto found = rows.find(candidates[i].problem + "/" + candidates[i].name);
    if (found == rows.end()) continue;
    const bool any_without = std::any_of(
        found->second.begin(), found->second.end(),
        [](const json::object* row) { return row->at("resources").as_array().empty(); });
    if (!any_without) continue;
    jobs.push_back({&candidates[i], to_string(candidates[i].arch)});
    kernel_of_job.push_back(i);
  }
  if (jobs.empty()) return;
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return;
  const std::vector<CompileCheck> checks = compile_jobs(*compiler, jobs);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (!checks[i].error.empty() || !checks[i].skipped.empty()) continue;
    kernels[kernel_of_job[i]].as_object()["compiled"] = {
        {"target", checks[i].target},
        {"compiler", "NVRTC " + compiler->version()},
        {"resources", to_json(checks[i].resources)}};
  }
}

/// That the searches from which kernels say they came are there.
void check_origins(const std::vector<Candidate>& candidates, const json::array& searches,
                   RecordComplaints& complaints) {
  std::set<std::string> recorded;
  for (const json::value& search : searches) {
    for (const json::value& candidate : search.at("candidates").as_array()) {
      recorded.insert(std::string(search.at("file").as_string()) + " " +
                      std::string(candidate.at("id").as_string()) + " " +
                      std::string(candidate.at("sha256").as_string()));
    }
  }
  for (const Candidate& candidate : candidates) {
    const Origin& origin = candidate.origin;
    if (origin.trajectory.empty()) continue;
    const std::string wanted =
        origin.trajectory + " " + origin.candidate + " " + candidate_sha256(candidate);
    if (recorded.contains(wanted)) continue;
    complaints.missing(complaints.root() / "generated" / candidate.problem / candidate.name,
                       "no recorded candidate " + origin.candidate + " of " + origin.trajectory +
                           " is this kernel");
  }
}

/// The problems of which there is a kernel or a time.
std::set<std::string> problems_with_something(const std::vector<Candidate>& candidates,
                                              const RowsByKernel& rows) {
  std::set<std::string> ids;
  for (const Candidate& candidate : candidates) ids.insert(candidate.problem);
  for (const auto& [name, row] : rows) ids.insert(name.substr(0, name.find('/')));
  return ids;
}

json::array to_json(const std::vector<Complaint>& complaints) {
  json::array array;
  for (const Complaint& one : complaints) {
    array.push_back({{"file", one.file}, {"message", one.message}, {"unreadable", one.unreadable}});
  }
  return array;
}

std::string without_all(std::string text, const std::string& part) {
  for (std::size_t at; !part.empty() && (at = text.find(part)) != std::string::npos;) {
    text.erase(at, part.size());
  }
  return text;
}

}  // namespace

void RecordComplaints::add(const fs::path& file, const std::string& message, bool unreadable) {
  const std::string name = from_root(file);
  std::string text = without_all(message, root_.string() + "/");
  if (text.starts_with(name + ": ")) text.erase(0, name.size() + 2);
  all_.push_back({name, one_line(text, 1000), unreadable});
}

void RecordComplaints::unreadable(const fs::path& file, const std::string& message) {
  add(file, message, true);
}

void RecordComplaints::missing(const fs::path& file, const std::string& message) {
  add(file, message, false);
}

bool RecordComplaints::any_unreadable() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& one) { return one.unreadable; });
}

std::string RecordComplaints::from_root(const fs::path& path) const {
  return path.lexically_relative(root_).string();
}

std::string text_for_report(const fs::path& path, RecordComplaints& complaints) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) {
    complaints.unreadable(path, bytes.error().message);
    return "";
  }
  if (is_utf8(*bytes)) return std::move(*bytes);
  std::string text;
  for (const char byte : *bytes) {
    if ((byte & 0x80) != 0) {
      text += "\uFFFD";
    } else {
      text += byte;
    }
  }
  return text;
}

json::value finite_or_null(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

json::object report_data(RecordComplaints& complaints) {
  const fs::path& root = complaints.root();
  const Result<Published> published = load_published_record(root);
  if (!published) {
    complaints.unreadable(root / "results" / "published.json", published.error().message);
  }
  const std::vector<Candidate> candidates = readable_candidates(complaints);
  json::array kernels;
  for (const Candidate& candidate : candidates) kernels.push_back(kernel_json(candidate));
  json::array devices = report_devices(complaints);
  const RowsByKernel rows = rows_by_kernel(devices);
  compare_with_kernels(rows, candidates, complaints);
  json::array searches = report_searches(complaints);
  add_compiled_resources(kernels, candidates, rows, searches);
  check_origins(candidates, searches, complaints);
  const std::set<std::string> shown = problems_with_something(candidates, rows);
  json::object badges;
  for (const BadgeDescription& one : badge_table) badges[one.name] = one.meaning;
  json::object data{{"schema", 1},
                    {"badges", std::move(badges)},
                    {"problems", report_problems(published ? &*published : nullptr, shown)},
                    {"kernels", std::move(kernels)},
                    {"devices", std::move(devices)},
                    {"searches", std::move(searches)},
                    {"claims", report_claims(complaints)},
                    {"studies", report_studies(complaints)},
                    {"dataset", report_dataset(complaints)},
                    {"gallery", report_gallery(complaints)}};
  if (published) data["published"] = to_json(*published);
  data["complaints"] = to_json(complaints.all());
  return data;
}

}  // namespace rekernel
