#include "harness/service/answer.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/compile/compiler_message.h"
#include "harness/problems/catalog.h"
#include "harness/service/text_for_model.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

constexpr std::size_t most_compiler_errors = 20;
constexpr std::size_t most_message_bytes = 16u << 10;
constexpr std::size_t most_launches = 32;

/// In whole nanoseconds and percents with four digits: Boost.JSON 1.81 does not round-trip every
/// double.
double rounded(double value) {
  constexpr double digits = 1e4;
  return static_cast<double>(std::llround(value * digits)) / digits;
}

double share_percent(std::int64_t bound_ns, const Timing& timing) {
  return rounded(100.0 * static_cast<double>(bound_ns) / static_cast<double>(timing.median_ns));
}

json::object percent_json(const Percent& percent) {
  return {{"value", rounded(percent.value)},
          {"low", rounded(percent.low)},
          {"high", rounded(percent.high)}};
}

json::object times_json(const Evaluation& evaluation) {
  const Timing& timing = *evaluation.timing;
  json::object times{{"median_ns", timing.median_ns},
                     {"low_ns", timing.low_ns},
                     {"high_ns", timing.high_ns},
                     {"samples", timing.samples_ns.size()}};
  if (timing.median_ns > 0 && evaluation.speed_of_light_ns > 0) {
    times["percent_of_speed_of_light"] = share_percent(evaluation.speed_of_light_ns, timing);
  }
  if (timing.median_ns > 0 && evaluation.ceiling_ns > 0) {
    times["percent_of_ceiling"] = share_percent(evaluation.ceiling_ns, timing);
  }
  json::array references;
  for (const ReferenceResult& one : evaluation.references) {
    json::object reference{{"id", one.id}};
    if (!one.unavailable.empty()) reference["unavailable"] = one.unavailable;
    if (one.unavailable.empty()) reference["median_ns"] = one.timing.median_ns;
    if (one.percent_of_reference) reference["percent"] = percent_json(*one.percent_of_reference);
    references.push_back(std::move(reference));
  }
  times["references"] = std::move(references);
  return times;
}

/// The bounds that a judged output has to keep, as shares of the truth's rms where they are.
json::object bounds_json(const Tolerance& tolerance) {
  json::object json{{"absolute", printed("%.4g", tolerance.absolute)},
                    {"relative", printed("%.4g", tolerance.relative)}};
  if (tolerance.rms_error_over_rms > 0) {
    json["rms_over_truth_rms"] = printed("%.4g", tolerance.rms_error_over_rms);
  }
  if (tolerance.max_error_over_rms > 0) {
    json["max_over_truth_rms"] = printed("%.4g", tolerance.max_error_over_rms);
  }
  return json;
}

json::object errors_json(const ErrorStats& errors) {
  json::object json{{"max_abs", printed("%.4g", errors.max_abs)},
                    {"rms", printed("%.4g", errors.rms)},
                    {"truth_rms", printed("%.4g", errors.truth_rms)},
                    {"share_of_tolerance", printed("%.4g", errors.worst_tolerance_ratio)},
                    {"failing_elements", errors.failing},
                    {"unwritten_elements", errors.unwritten}};
  if (errors.first_failing >= 0) {
    json["first_failing"] = {{"index", errors.first_failing},
                             {"expected", printed("%.9g", errors.first_truth)},
                             {"got", printed("%.9g", errors.first_value)}};
  }
  return json;
}

/// The first of those that take the same: captured plans may have thousands.
std::vector<LaunchUse> different_launches(const std::vector<LaunchUse>& launches) {
  std::vector<LaunchUse> different;
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> told;
  for (const LaunchUse& use : launches) {
    if (different.size() == most_launches) break;
    if (told.emplace(use.kernel, use.threads, use.dynamic_shared_bytes).second) {
      different.push_back(use);
    }
  }
  return different;
}

/// "kernel.cu(12): error: …" → 12; 0 if it has no line.
std::int64_t line_in(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return 0;
  std::int64_t line = 0;
  const auto [end, code] = std::from_chars(text.data() + open + 1, text.data() + text.size(), line);
  return code == std::errc() && end != text.data() + text.size() && *end == ')' ? line : 0;
}

}  // namespace

json::array compiler_errors(const std::string& message) {
  json::array errors;
  std::string_view rest = message;
  while (!rest.empty() && errors.size() < most_compiler_errors) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t at = line.find("error:");
    if (at == std::string_view::npos) continue;
    json::object error{{"line", line_in(line.substr(0, at))},
                       {"message", one_line(line.substr(at + 7 > line.size() ? at : at + 7), 500)}};
    if (std::find(errors.begin(), errors.end(), json::value(error)) == errors.end()) {
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

json::object verdict_json(const Evaluation& evaluation, const Task& task, const JudgedBy& judged_by,
                          const std::vector<LaunchUse>& launches) {
  json::object verdict{{"kind", to_string(Answer::Kind::verdict)},
                       {"status", status_word(evaluation, task.tier)},
                       {"tier", to_string(task.tier)},
                       {"problem", task.problem},
                       {"name", task.name}};
  if (!evaluation.sha256.empty()) verdict["sha256"] = evaluation.sha256;
  if (!evaluation.check.empty()) verdict["failed_check"] = evaluation.check;
  if (!evaluation.message.empty()) verdict["message"] = headline(evaluation.message);
  if (evaluation.status == Status::compile_failed) {
    verdict["compiler_errors"] = compiler_errors(evaluation.message);
    verdict["compiler_log"] = visible_lines(evaluation.message, most_message_bytes);
  }
  if (const std::string warnings = warnings_in(evaluation.compile_log); !warnings.empty()) {
    verdict["compiler_warnings"] = visible_lines(warnings, most_message_bytes);
  }
  if (evaluation.errors) {
    json::object errors = errors_json(*evaluation.errors);
    if (const Problem* problem = find_problem(task.problem)) {
      errors["bounds"] = bounds_json(problem->tolerance);
    }
    verdict["errors"] = std::move(errors);
  }
  if (task.tier == Tier::timed) {
    verdict["badges"] = json::value_from(evaluation.earned_badges().names());
    if (!evaluation.badge_notes.empty()) verdict["badge_notes"] = evaluation.badge_notes;
  }
  if (evaluation.timing) verdict["times"] = times_json(evaluation);
  if (!evaluation.resources.empty()) verdict["resources"] = to_json(evaluation.resources);
  const std::vector<LaunchUse> different = different_launches(launches);
  if (!different.empty()) verdict["launches"] = to_json(different);
  if (task.text_tokens > 0) {
    verdict["text"] = text_for_model(evaluation, task.tier, task.text_tokens, different);
  }
  if (task.record) verdict["record"] = to_json(evaluation);
  json::object by{{"judge", judged_by.judge}, {"device", judged_by.device}};
  if (!judged_by.toolchain.empty()) by["toolchain"] = judged_by.toolchain;
  if (judged_by.made_up) by["made_up"] = true;
  verdict["judged_by"] = std::move(by);
  return verdict;
}

Answer without_verdict(Answer::Kind kind, const std::string& code, const std::string& message,
                       bool retry) {
  const json::object body{{"kind", to_string(kind)},
                          {"code", code},
                          {"message", one_line(message, 2000)},
                          {"retry", retry}};
  return {kind, "", "", json::serialize(body)};
}

}  // namespace rekernel::service
