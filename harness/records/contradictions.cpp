#include "harness/records/contradictions.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <map>
#include <set>

#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/evaluation/statistics.h"
#include "harness/records/ceiling_spread.h"
#include "harness/records/known_devices.h"

namespace rekernel {

namespace {

constexpr std::size_t longest_name = 200;

std::optional<double> number_in(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? value : std::numeric_limits<double>::quiet_NaN();
}

/// The row as the evaluation that it was made of, as far as it keeps it.
Evaluation evaluation_of(const BenchRow& row) {
  Evaluation evaluation;
  evaluation.problem = row.problem;
  evaluation.kernel = row.kernel;
  evaluation.sha256 = row.sha256;
  evaluation.status = row.status;
  evaluation.message = row.message;
  evaluation.harness = row.harness;
  evaluation.resources = row.resources;
  evaluation.badges = row.badges;
  evaluation.badge_notes = row.badge_notes;
  evaluation.stress_left_out = row.stress_left_out;
  evaluation.evidence = row.evidence;
  if (row.median_ns > 0) {
    evaluation.timing = Timing{row.samples_ns, row.median_ns, row.low_ns, row.high_ns};
  }
  evaluation.ceilings = row.ceilings;
  evaluation.ceiling_ns = row.ceiling_ns;
  evaluation.speed_of_light_ns = row.speed_of_light_ns;
  evaluation.witnesses = row.witnesses;
  evaluation.reference_noise_ppm = row.noise_ppm;
  evaluation.repeated_headline_ns = row.repeated_headline_ns;
  evaluation.conditions = row.conditions;
  if (const auto max_abs = number_in(row.max_error)) {
    ErrorStats errors;
    errors.max_abs = *max_abs;
    errors.rms = number_in(row.rms_error).value_or(0);
    errors.truth_rms = number_in(row.truth_rms).value_or(0);
    errors.worst_tolerance_ratio = number_in(row.tolerance_share).value_or(0);
    evaluation.errors = errors;
  }
  for (const RecordedReference& reference : row.references) {
    ReferenceResult result;
    result.id = reference.id;
    result.unavailable = reference.unavailable;
    // A row keeps no quartiles of its references.
    result.timing = summarise(reference.samples_ns.empty() ? std::vector{reference.median_ns}
                                                           : reference.samples_ns);
    result.timing.median_ns = reference.median_ns;
    result.timing.samples_ns = reference.samples_ns;
    result.percent_of_reference = reference.percent;
    result.kernel_samples_ns = reference.kernel_samples_ns;
    evaluation.references.push_back(std::move(result));
  }
  return evaluation;
}

/// A field of an evaluation by its name in a row.
std::string in_row(std::string line) {
  constexpr std::array<std::pair<const char*, const char*>, 7> names = {
      {{"errors.max_abs", "max_error"},
       {"errors.rms", "rms_error"},
       {"errors.worst_tolerance_ratio", "tolerance_share"},
       {"reference_noise_ppm", "noise_ppm"},
       {"percent.value", "percent"},
       {"percent.", ""},
       {"timing.", ""}}};
  const std::size_t end = line.find(": ");
  for (const auto& [evaluation, row] : names) {
    const std::size_t at = line.find(evaluation);
    if (at < end) return line.replace(at, std::string_view(evaluation).size(), row);
  }
  return line;
}

/// YYYY-MM-DD, a day that there was.
bool is_date(const std::string& text) {
  std::tm date{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%d", &date);
  if (text.size() != 10 || !end || *end != '\0') return false;
  const std::tm asked = date;
  const std::time_t noon = ::timegm(&date);
  return date.tm_mday == asked.tm_mday && noon <= std::time(nullptr);
}

std::vector<std::string> contradictions_of(const BenchRow& row, const Bench& bench) {
  // Errors are written with two digits, shares with four, percentages with one decimal.
  const EvaluationContext context{.device = device_of(bench),
                                  .errors_rounding = 5e-2,
                                  .shares_rounding = 5e-4,
                                  .percent_units_rounding = 0.05};
  std::vector<std::string> found;
  for (std::string& line : contradictions(evaluation_of(row), context)) {
    found.push_back(in_row(std::move(line)));
  }
  // Rows that were measured before witnesses were kept have a digest of the old kind.
  if (row.status == Status::passed && row.witnesses.empty() && is_row_digest(row.harness)) {
    found.push_back("witnesses: none, but the status is passed");
  }
  if (row.status != Status::passed && !row.badges.empty()) {
    found.push_back(std::string("badges: the status is ") + to_string(row.status));
  }
  if (!is_date(row.measured)) {
    found.push_back("measured: expected a day up to today as YYYY-MM-DD, got '" +
                    one_line(row.measured, longest_name) + "'");
  }
  return found;
}

/// What the file says of all rows.
std::vector<std::string> contradictions_of_summaries(const Bench& bench) {
  std::vector<std::string> found;
  Bench again = bench;
  summarise_rows(again);
  if (again.ceilings.copy_bytes_per_s != bench.ceilings.copy_bytes_per_s) {
    found.push_back(
        "ceilings.copy_bytes_per_s: " + std::to_string(bench.ceilings.copy_bytes_per_s) +
        ", but the rows' best is " + std::to_string(again.ceilings.copy_bytes_per_s));
  }
  if (again.ceilings.fp16_flops_per_s != bench.ceilings.fp16_flops_per_s) {
    found.push_back(
        "ceilings.fp16_flops_per_s: " + std::to_string(bench.ceilings.fp16_flops_per_s) +
        ", but the rows' best is " + std::to_string(again.ceilings.fp16_flops_per_s));
  }
  if (again.toolchain != bench.toolchain) {
    found.push_back("toolchain: not what the rows were measured with");
  }
  return found;
}

}  // namespace

std::vector<std::string> contradictions(const Bench& bench, const std::string& where) {
  std::vector<std::string> found;
  for (const std::string& line : contradictions_of_summaries(bench)) {
    found.push_back(where + ": " + line);
  }
  for (const std::string& line : unlike_known_device(bench)) found.push_back(where + ": " + line);
  for (const std::string& line : outlying_ceilings(bench)) found.push_back(where + ": " + line);
  std::set<std::string> names;
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const BenchRow& row = bench.rows[i];
    const std::string name = row.problem + "/" + row.kernel;
    const std::string place =
        where + ": rows[" + std::to_string(i) + "] (" + one_line(name, longest_name) + "): ";
    if (!names.insert(name).second) found.push_back(place + "kernel: it appears twice");
    for (const std::string& line : contradictions_of(row, bench)) found.push_back(place + line);
  }
  return found;
}

std::vector<std::string> contradictions_between(
    const std::vector<std::pair<std::filesystem::path, Bench>>& benches) {
  constexpr std::array judged_wrong = {Status::wrong_result, Status::out_of_bounds_write,
                                       Status::modified_input};
  std::map<std::string, std::string> passed;  // content → where
  for (const auto& [path, bench] : benches) {
    for (const BenchRow& row : bench.rows) {
      if (row.status == Status::passed) passed.emplace(row.sha256, path.string());
    }
  }
  std::vector<std::string> found;
  for (const auto& [path, bench] : benches) {
    for (const BenchRow& row : bench.rows) {
      const auto other = passed.find(row.sha256);
      const bool wrong =
          std::find(judged_wrong.begin(), judged_wrong.end(), row.status) != judged_wrong.end();
      if (!wrong || other == passed.end()) continue;
      found.push_back(path.string() + ": " + row.problem + "/" + row.kernel +
                      ": status: " + to_string(row.status) + ", but " + other->second +
                      " says that the same source and plan passed");
    }
  }
  return found;
}

}  // namespace rekernel
