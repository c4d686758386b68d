#include "harness/service/text_for_model.h"

#include <boost/json.hpp>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/compile/compiler_message.h"
#include "harness/records/report.h"
#include "harness/service/answer.h"

namespace rekernel::service {

namespace {

constexpr std::size_t bytes_of_a_token = 3;
constexpr std::size_t longest_name = 100;

std::string number(double value) { return printed("%.3g", value); }

std::string verdict_part(const Evaluation& evaluation, Tier tier) {
  std::string text = "status: " + status_word(evaluation, tier);
  if (!evaluation.check.empty()) text += " (check: " + evaluation.check + ")";
  if (evaluation.status != Status::compile_failed) {
    return text + (evaluation.message.empty() ? "" : "\n" + headline(evaluation.message));
  }
  const boost::json::array errors = compiler_errors(evaluation.message);
  for (const boost::json::value& error : errors) {
    const std::int64_t line = error.at("line").as_int64();
    text += (line > 0 ? "\nline " + std::to_string(line) + ": " : "\n") +
            std::string(error.at("message").as_string());
  }
  return errors.empty() ? text + "\n" + headline(evaluation.message) : text;
}

std::string element_part(const Evaluation& evaluation) {
  if (!evaluation.errors || evaluation.errors->first_failing < 0) return "";
  const ErrorStats& errors = *evaluation.errors;
  return std::to_string(errors.failing) + " elements are outside of the tolerance, " +
         std::to_string(errors.unwritten) + " were never written; first at flat index " +
         std::to_string(errors.first_failing) + ": expected " + number(errors.first_truth) +
         ", got " + number(errors.first_value);
}

std::string error_part(const Evaluation& evaluation) {
  if (!evaluation.errors) return "";
  return "largest error " + number(evaluation.errors->max_abs) + ", " +
         number(evaluation.errors->worst_tolerance_ratio) + " of the tolerance";
}

std::string time_part(const Evaluation& evaluation) {
  if (!evaluation.timing || evaluation.timing->median_ns == 0) return "";
  const Timing& timing = *evaluation.timing;
  std::string text = "time " + milliseconds(timing.median_ns) + " ms";
  const ReferenceResult* headline = evaluation.headline();
  if (headline && headline->percent_of_reference) {
    text += ", " + percent_text(headline->percent_of_reference->value) + " of " + headline->id;
  }
  if (evaluation.speed_of_light_ns > 0) {
    text += ", " +
            percent_text(100.0 * static_cast<double>(evaluation.speed_of_light_ns) /
                         static_cast<double>(timing.median_ns)) +
            " of the speed of light";
  }
  return text;
}

std::string badge_part(const Evaluation& evaluation, Tier tier) {
  if (evaluation.status != Status::passed || tier != Tier::timed) return "";
  std::string text = "badges: " + joined(evaluation.earned_badges().names());
  if (!evaluation.badge_notes.empty()) text += " (" + evaluation.badge_notes + ")";
  return text;
}

std::string launch_line(const LaunchUse& use) {
  std::string text =
      "launch " + one_line(use.kernel, longest_name) + ": " + std::to_string(use.threads) +
      " threads a block, " + std::to_string(use.registers) + " registers, " +
      std::to_string(use.static_shared_bytes + use.dynamic_shared_bytes) +
      " bytes of shared memory, " + std::to_string(use.spill_bytes) + " bytes of spills";
  if (!use.refusal.empty()) return text + "; the chip refuses it: " + use.refusal;
  if (!use.occupancy) return text;
  return text + "; occupancy " + percent_text(100.0 * use.occupancy->share()) + ", limited by " +
         joined(use.occupancy->limited_by);
}

std::string resource_part(const Evaluation& evaluation, const std::vector<LaunchUse>& launches) {
  std::string text;
  for (const LaunchUse& use : launches) text += (text.empty() ? "" : "\n") + launch_line(use);
  if (!launches.empty()) return text;
  for (const KernelResources& kernel : evaluation.resources) {
    text += (text.empty() ? "" : "\n") + std::string("kernel ") + kernel.name + ": " +
            std::to_string(kernel.registers) + " registers, " +
            std::to_string(kernel.static_shared_bytes) + " bytes of static shared memory, " +
            std::to_string(kernel.spill_store_bytes + kernel.spill_load_bytes) + " bytes of spills";
  }
  return text;
}

}  // namespace

std::size_t most_tokens(const std::string& text) {
  return (text.size() + bytes_of_a_token - 1) / bytes_of_a_token;
}

std::string status_word(const Evaluation& evaluation, Tier tier) {
  if (tier == Tier::compile && evaluation.status == Status::passed) return "compiles";
  return to_string(evaluation.status);
}

std::string text_for_model(const Evaluation& evaluation, Tier tier, int budget_tokens,
                           const std::vector<LaunchUse>& launches) {
  if (budget_tokens <= 0) return "";
  std::size_t left = static_cast<std::size_t>(budget_tokens) * bytes_of_a_token;
  std::string text;
  const std::vector<std::string> parts = {verdict_part(evaluation, tier),
                                          element_part(evaluation),
                                          time_part(evaluation),
                                          badge_part(evaluation, tier),
                                          error_part(evaluation),
                                          resource_part(evaluation, launches),
                                          warnings_in(evaluation.compile_log)};
  constexpr std::size_t shortest_cut = 24;  ///< less of a part tells nothing
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (part.size() + 1 > left && left < shortest_cut && !text.empty()) break;
    // "…" takes three bytes, the line feed one.
    std::string piece = visible_lines(part, part.size() + 1 > left && left > 4 ? left - 4 : left);
    if (piece.size() + 1 > left) break;
    text += piece + "\n";
    left -= piece.size() + 1;
  }
  return text;
}

}  // namespace rekernel::service
