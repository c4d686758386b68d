#include "harness/explain/verdict.h"

#include <boost/json.hpp>
#include <cstdlib>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/compile/compiler_message.h"
#include "harness/project/recorded.h"
#include "harness/records/report.h"
#include "harness/terminal/labelled.h"

namespace rekernel {

namespace {

/// An error as records hold it; nothing where none was measured.
std::optional<double> real_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

std::string share_of_time(std::int64_t bound_ns, std::int64_t median_ns) {
  return percent_text(100.0 * static_cast<double>(bound_ns) / static_cast<double>(median_ns));
}

/// "rms 9.7e-05 of the truth's rms, at most 1e-4 (97.0%)"
std::string error_beside_bound(const char* name, const std::string& error, double truth_rms,
                               double bound) {
  const std::optional<double> value = real_of(error);
  if (!value || !(truth_rms > 0) || !(bound > 0)) return "";
  const double share = *value / truth_rms;
  return std::string(name) + " " + printed("%.2g", share) + " of the truth's rms, bound " +
         printed("%.2g", bound) + " (" + percent_text(100.0 * share / bound) + " of it)";
}

std::string errors_beside_bounds(const Verdict& verdict, const Problem& problem) {
  const double truth_rms = real_of(verdict.truth_rms).value_or(0);
  std::vector<std::string> parts;
  for (std::string part : {error_beside_bound("rms error", verdict.rms_error, truth_rms,
                                              problem.tolerance.rms_error_over_rms),
                           error_beside_bound("largest error", verdict.max_error, truth_rms,
                                              problem.tolerance.max_error_over_rms)}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  if (!verdict.library_rms_error.empty() && !verdict.reference.empty()) {
    parts.push_back(one_line(verdict.reference, 64) + " itself: rms " +
                    one_line(verdict.library_rms_error, 32) + ", largest " +
                    one_line(verdict.library_max_error, 32) + " (the candidate: " +
                    one_line(verdict.rms_error, 32) + ", " + one_line(verdict.max_error, 32) + ")");
  }
  return joined(parts, "; ");
}

std::string roofline_text(const Verdict& verdict, const Problem& problem) {
  const std::optional<Roofline> roof = roofline(problem, verdict.ceilings);
  if (!roof) return "";
  std::string text = printed("%.3g", roof->intensity) + " operations a byte";
  if (roof->ridge > 0) {
    text += ", the ridge lies at " + printed("%.3g", roof->ridge);
  }
  text += roof->bound_by_memory() ? ": bound by memory" : ": bound by the matrix units";
  if (verdict.median_ns > 0 && verdict.ceiling_ns > 0) {
    text += "; " + share_of_time(verdict.ceiling_ns, verdict.median_ns) + " of the ceiling (" +
            milliseconds(verdict.ceiling_ns) + " ms)";
  }
  if (verdict.median_ns > 0 && verdict.speed_of_light_ns > 0) {
    text += ", " + share_of_time(verdict.speed_of_light_ns, verdict.median_ns) +
            " of the speed of light (" + milliseconds(verdict.speed_of_light_ns) + " ms)";
  }
  return text;
}

std::string time_beside_reference(const Verdict& verdict) {
  std::string text = milliseconds(verdict.median_ns) + " ms";
  if (verdict.percent) {
    text += ", " + percent_text(verdict.percent->value) + " of " + one_line(verdict.reference, 64) +
            " (" + milliseconds(verdict.reference_ns) + " ms)";
  }
  return text;
}

}  // namespace

Verdict verdict_of(const BenchRow& row, const Bench& bench, const std::string& source) {
  Verdict verdict;
  verdict.source = source;
  verdict.device = bench.device_name;
  verdict.measured = row.measured;
  verdict.status = row.status;
  verdict.message = row.message;
  verdict.badges = row.badges;
  verdict.badge_notes = row.badge_notes;
  if (row.evidence) verdict.other_sizes = row.evidence->other_sizes;
  verdict.median_ns = row.median_ns;
  verdict.ceiling_ns = row.ceiling_ns;
  verdict.speed_of_light_ns = row.speed_of_light_ns;
  verdict.ceilings = row.ceilings.copy_bytes_per_s > 0 ? row.ceilings : bench.ceilings;
  verdict.max_error = row.max_error;
  verdict.rms_error = row.rms_error;
  verdict.truth_rms = row.truth_rms;
  verdict.library_max_error = row.library_max_error;
  verdict.library_rms_error = row.library_rms_error;
  if (const RecordedReference* headline = row.headline()) {
    verdict.reference = headline->id;
    verdict.reference_ns = headline->median_ns;
    verdict.percent = headline->percent;
  }
  return verdict;
}

Verdict verdict_of(const Evaluation& evaluation, const std::string& device,
                   const std::string& source) {
  Verdict verdict;
  verdict.source = source;
  verdict.device = device;
  verdict.status = evaluation.status;
  verdict.message = evaluation.message;
  verdict.check = evaluation.check;
  verdict.badges = evaluation.earned_badges();
  verdict.badge_notes = evaluation.badge_notes;
  if (evaluation.evidence) verdict.other_sizes = evaluation.evidence->other_sizes;
  if (evaluation.timing) verdict.median_ns = evaluation.timing->median_ns;
  verdict.ceiling_ns = evaluation.ceiling_ns;
  verdict.speed_of_light_ns = evaluation.speed_of_light_ns;
  verdict.ceilings = evaluation.ceilings;
  if (evaluation.errors) {
    verdict.max_error = error_text(evaluation.errors->max_abs);
    verdict.rms_error = error_text(evaluation.errors->rms);
    verdict.truth_rms = error_text(evaluation.errors->truth_rms);
  }
  if (const ReferenceResult* headline = evaluation.headline()) {
    verdict.reference = headline->id;
    verdict.reference_ns = headline->timing.median_ns;
    verdict.percent = headline->percent_of_reference;
    if (headline->errors) {
      verdict.library_max_error = error_text(headline->errors->max_abs);
      verdict.library_rms_error = error_text(headline->errors->rms);
    }
  }
  return verdict;
}

Result<std::vector<Verdict>> recorded_verdicts(const std::filesystem::path& root,
                                               const std::string& problem,
                                               const std::string& sha256) {
  std::vector<Verdict> verdicts;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    const Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    for (const BenchRow& row : bench->rows) {
      if (row.problem != problem || row.sha256 != sha256) continue;
      verdicts.push_back(verdict_of(row, *bench, std::filesystem::relative(path, root).string()));
    }
  }
  return verdicts;
}

std::optional<Roofline> roofline(const Problem& problem, const Ceilings& ceilings) {
  if (ceilings.copy_bytes_per_s <= 0 || problem.min_bytes <= 0) return std::nullopt;
  const auto nanoseconds = [](double amount, std::int64_t rate) {
    return static_cast<std::int64_t>(amount / static_cast<double>(rate) * 1e9);
  };
  Roofline roof;
  roof.intensity = static_cast<double>(problem.operations) / static_cast<double>(problem.min_bytes);
  roof.memory_ns = nanoseconds(static_cast<double>(problem.min_bytes), ceilings.copy_bytes_per_s);
  if (problem.matrix_products > 0 && ceilings.fp16_flops_per_s > 0) {
    roof.matrix_ns = nanoseconds(static_cast<double>(problem.operations) * problem.matrix_products,
                                 ceilings.fp16_flops_per_s);
    roof.ridge = static_cast<double>(ceilings.fp16_flops_per_s) / problem.matrix_products /
                 static_cast<double>(ceilings.copy_bytes_per_s);
  }
  return roof;
}

std::string verdict_text(const Verdict& verdict, const Problem* problem) {
  std::string text = "verdict: " + std::string(to_string(verdict.status));
  if (!verdict.badges.empty()) text += " (" + joined(verdict.badges.names()) + ")";
  text += ", " + one_line(verdict.device, 64);
  if (!verdict.measured.empty()) text += ", " + one_line(verdict.measured, 16);
  text = wrapped(text + ", " + one_line(verdict.source, 300), page_columns, 2) + "\n";
  if (!verdict.message.empty()) text += labelled("message", headline(verdict.message));
  text += labelled("check", one_line(verdict.check, 200));
  text += labelled("badges", visible_lines(verdict.badge_notes, 1000));
  if (verdict.median_ns > 0) text += labelled("time", time_beside_reference(verdict));
  text += labelled("sizes", other_sizes_text(verdict.other_sizes));
  if (!problem) return text;
  text += labelled("errors", errors_beside_bounds(verdict, *problem));
  return text + labelled("roofline", roofline_text(verdict, *problem));
}

boost::json::object to_json(const Verdict& verdict, const Problem* problem) {
  boost::json::object json{{"source", verdict.source},
                           {"device", verdict.device},
                           {"measured", verdict.measured},
                           {"status", to_string(verdict.status)},
                           {"message", verdict.message},
                           {"check", verdict.check},
                           {"badges", to_json(verdict.badges)},
                           {"badge_notes", verdict.badge_notes},
                           {"median_ns", verdict.median_ns},
                           {"ceiling_ns", verdict.ceiling_ns},
                           {"speed_of_light_ns", verdict.speed_of_light_ns},
                           {"max_error", verdict.max_error},
                           {"rms_error", verdict.rms_error},
                           {"truth_rms", verdict.truth_rms}};
  for (const SizeResult& one : verdict.other_sizes) {
    boost::json::value& list = json["other_sizes"];
    if (!list.is_array()) list.emplace_array();
    list.get_array().push_back(to_json(one));
  }
  if (!verdict.reference.empty()) {
    json["reference"] = {{"id", verdict.reference}, {"median_ns", verdict.reference_ns}};
  }
  const std::optional<Roofline> roof =
      problem ? roofline(*problem, verdict.ceilings) : std::nullopt;
  if (roof) {
    json["roofline"] = {{"operations_per_byte", roof->intensity},
                        {"ridge", roof->ridge},
                        {"memory_ns", roof->memory_ns},
                        {"matrix_ns", roof->matrix_ns},
                        {"bound_by", roof->bound_by_memory() ? "memory" : "matrix units"}};
  }
  return json;
}

}  // namespace rekernel
