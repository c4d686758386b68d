#include "harness/report/judgement.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <tuple>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/project/recorded.h"
#include "harness/records/report.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

std::string interval_text(const std::string& low, const std::string& high) {
  return " (95% interval " + low + " to " + high + ")";
}

std::string time_text(const BenchRow& row) {
  if (row.samples_ns.empty()) return "none";
  const MedianInterval interval = time_interval(row);
  return milliseconds(row.median_ns) + " ms" +
         interval_text(milliseconds(interval.low), milliseconds(interval.high));
}

std::string reference_text(const BenchRow& row) {
  const RecordedReference* headline = row.headline();
  if (!headline) return "none";
  return percent_text(headline->percent.value) + " of the speed of " + headline->id +
         interval_text(percent_text(headline->percent.low), percent_text(headline->percent.high)) +
         ", which takes " + milliseconds(headline->median_ns) + " ms";
}

/// An error beside what the tolerance allows it to be.
std::string bounded(const std::string& error, double bound_over_rms, const BenchRow& row) {
  const double bound = bound_over_rms * std::strtod(row.truth_rms.c_str(), nullptr);
  return error + " (at most " + printed("%.1e", bound) + ")";
}

std::string errors_text(const BenchRow& row) {
  const Problem* problem = find_problem(row.problem);
  if (!problem || row.max_error.empty()) return "none";
  const Tolerance& tolerance = problem->tolerance;
  return "root mean square " + bounded(row.rms_error, tolerance.rms_error_over_rms, row) +
         ", largest " + bounded(row.max_error, tolerance.max_error_over_rms, row) + ", " +
         row.tolerance_share + " of the element's tolerance (at most 1)";
}

std::string versions_text(const BenchRow& row) {
  std::vector<std::string> versions;
  const auto driver = row.toolchain.find("driver");
  if (driver != row.toolchain.end()) versions.push_back(driver->second);
  for (const auto& [component, version] : row.toolchain) {
    if (component != "driver") versions.push_back(component + " " + version);
  }
  return joined(versions);
}

std::string judge_text(const BenchRow& row) {
  const std::string present = present_judge(row);
  if (row.harness == present) return row.harness;
  return row.harness + ": an older judge than this program's, which is " + present;
}

/// Sorted first, what is most like what the export is for.
struct Found {
  bool elsewhere;  ///< on another device than the one that is here
  bool unlike;     ///< on another architecture than the one that it is written for
  bool older;      ///< judged by another judge
  std::string measured;
  JudgedOn judged;

  bool operator<(const Found& other) const {
    return std::tie(elsewhere, unlike, older, other.measured) <
           std::tie(other.elsewhere, other.unlike, other.older, measured);
  }
};

std::string tolerance_class(const fs::path& root, const Problem& problem) {
  const fs::path file = root / "ops" / "problems" / problem.group / (problem.id + ".json");
  const Result<boost::json::value> json = read_json_file(file);
  if (!json || !json->is_object()) return "";
  const boost::json::value* tolerance = json->as_object().if_contains("tolerance");
  if (tolerance && tolerance->is_object()) tolerance = tolerance->as_object().if_contains("class");
  return tolerance && tolerance->is_string() ? std::string(tolerance->as_string()) + ": " : "";
}

}  // namespace

JudgedOn judged_on(const Bench& bench, const BenchRow& row) {
  return {.device = bench.device_name + " (sm " + bench.sm + ")",
          .verdict = to_string(row.status),
          .badges = row.badges.empty() ? "none" : joined(row.badges.names()),
          .errors = errors_text(row),
          .time = time_text(row),
          .percent_of_reference = reference_text(row),
          .driver = versions_text(row),
          .judge = judge_text(row),
          .measured = row.measured,
          .measured_by = row.signer};
}

std::string tolerance_text(const fs::path& root, const Problem& problem) {
  const Tolerance& tolerance = problem.tolerance;
  const auto number = [](double value) { return printed("%g", value); };
  return tolerance_class(root, problem) + "every element within " + number(tolerance.absolute) +
         " + " + number(tolerance.relative) + "·|truth|, the error's root mean square at most " +
         number(tolerance.rms_error_over_rms) + " and the largest error at most " +
         number(tolerance.max_error_over_rms) + " of the truth's root mean square";
}

Result<RecordedJudgement> recorded_judgement(const fs::path& root, const Candidate& candidate,
                                             const std::string& here) {
  const std::string sha256 = candidate_sha256(candidate);
  const ComputeCapability capability = candidate.arch->capability;
  const std::string sm = std::to_string(capability.major) + "." + std::to_string(capability.minor);
  std::vector<Found> found;
  for (const fs::path& path : recorded_benches(root)) {
    const Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    for (const BenchRow& row : bench->rows) {
      if (row.problem != candidate.problem || row.sha256 != sha256) continue;
      found.push_back({bench->device_name != here, bench->sm != sm,
                       row.harness != present_judge(row), row.measured, judged_on(*bench, row)});
    }
  }
  std::stable_sort(found.begin(), found.end());
  RecordedJudgement judgement{tolerance_text(root, *find_problem(candidate.problem)), {}};
  for (Found& one : found) judgement.devices.push_back(std::move(one.judged));
  return judgement;
}

}  // namespace rekernel
