#include "harness/records/evaluation_contradictions.h"

#include <algorithm>
#include <cmath>

#include <set>
#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/candidate/arch.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/check.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "harness/problems/sizes.h"

namespace rekernel {

namespace {

using Samples = std::vector<std::int64_t>;

constexpr std::size_t longest_field = 200;
constexpr std::size_t longest_note = 600;
constexpr int fewest_seeds = 5;
constexpr std::size_t fewest_digests = 3;
constexpr std::size_t fewest_stress_cases = 4;
constexpr int max_registers = 255;

std::string number(double value) { return printed("%.6g", value); }

/// Judges one evaluation; what is wrong is collected.
class Examination {
 public:
  Examination(const Evaluation& evaluation, const EvaluationContext& context)
      : evaluation_(evaluation), context_(context), problem_(find_problem(evaluation.problem)) {}

  std::vector<std::string> found() {
    examine_names();
    examine_status();
    examine_timing();
    examine_bounds();
    examine_references();
    examine_noise();
    if (passed()) {
      examine_errors();
      examine_witness();
      examine_badges();
    }
    examine_resources();
    return std::move(found_);
  }

 private:
  bool passed() const { return evaluation_.status == Status::passed; }
  void note(const std::string& field, const std::string& what) {
    found_.push_back(one_line(field, longest_field) + ": " + one_line(what, longest_note));
  }
  void expect_equal(const std::string& field, std::int64_t said, std::int64_t made,
                    const char* from) {
    if (said == made) return;
    note(field, std::to_string(said) + ", but " + from + " give " + std::to_string(made));
  }

  void examine_names() {
    if (!problem_)
      note("problem", "'" + evaluation_.problem + "' is not a problem in the catalogue");
    const std::string& sha256 = evaluation_.sha256;
    const bool hexadecimal =
        sha256.find_first_not_of("0123456789abcdef") == std::string::npos && sha256.size() == 64;
    if (!hexadecimal) note("sha256", "expected 64 hexadecimal digits");
    if (!evaluation_.target.empty() && !capability_of(evaluation_.target)) {
      note("target", "'" + evaluation_.target + "' is not an architecture");
    }
    std::set<std::uint64_t> distinct(evaluation_.seeds.begin(), evaluation_.seeds.end());
    if (distinct.size() != evaluation_.seeds.size()) note("seeds", "one appears twice");
  }

  void examine_status() {
    if (passed() && !evaluation_.message.empty()) {
      note("message", "a kernel that passed has none, got '" + evaluation_.message + "'");
    }
    if (!passed() && evaluation_.message.empty()) {
      note("message", std::string("none, but the status is ") + to_string(evaluation_.status));
    }
    if (!passed()) return;
    if (!evaluation_.timing) note("timing", "none, but the status is passed");
    if (!evaluation_.errors) note("errors", "none, but the status is passed");
    // A bench's rows keep no seeds.
    if (!evaluation_.seeds.empty() && evaluation_.seeds.size() < fewest_seeds) {
      note("seeds", std::to_string(evaluation_.seeds.size()) + ", but a verdict needs " +
                        std::to_string(fewest_seeds));
    }
  }

  /// Median and quartiles against the samples, or against each other where there are none.
  void examine_summary(const std::string& field, const Timing& timing) {
    if (timing.samples_ns.empty()) {
      if (timing.median_ns < timing.low_ns || timing.median_ns > timing.high_ns) {
        note(field + "median_ns",
             std::to_string(timing.median_ns) + " is outside of its own quartiles, " +
                 std::to_string(timing.low_ns) + " to " + std::to_string(timing.high_ns));
      }
      return;
    }
    const Timing made = summarise(timing.samples_ns);
    expect_equal(field + "median_ns", timing.median_ns, made.median_ns, "its samples");
    expect_equal(field + "low_ns", timing.low_ns, made.low_ns, "its samples");
    expect_equal(field + "high_ns", timing.high_ns, made.high_ns, "its samples");
  }

  void examine_timing() {
    if (evaluation_.timing) examine_summary("timing.", *evaluation_.timing);
    if (evaluation_.conditions.rejected_samples > 0 &&
        evaluation_.conditions.throttle_reasons == 0) {
      note("conditions.rejected_samples",
           std::to_string(evaluation_.conditions.rejected_samples) +
               ", but conditions.throttle_reasons names no reason to reject any");
    }
  }

  /// Another judge may have counted a problem's work otherwise, and knew another definition.
  bool is_of_this_judge() const {
    const std::string ours = harness_digest(digest_of_problem(evaluation_.problem), {});
    const std::size_t judge_and_problem = ours.rfind('-');
    return evaluation_.harness.starts_with(ours.substr(0, judge_and_problem));
  }

  void examine_bounds() {
    if (!problem_) return;
    const bool is_countable = is_of_this_judge();
    if (evaluation_.ceilings.copy_bytes_per_s > 0 && is_countable) {
      expect_equal("ceiling_ns", evaluation_.ceiling_ns,
                   ceiling_ns(*problem_, evaluation_.ceilings), "the ceilings");
    }
    if (!evaluation_.timing) return;
    std::int64_t least = evaluation_.speed_of_light_ns;
    if (context_.device) {
      const std::int64_t of_device = speed_of_light_ns(*problem_, *context_.device);
      if (is_countable)
        expect_equal("speed_of_light_ns", least, of_device, "the device's attributes");
      least = std::max(least, of_device);
    }
    const std::int64_t median = evaluation_.least_median_ns();
    if (passed() && median < least) {
      note("timing.median_ns", std::to_string(median) + " is below the speed of light, " +
                                   std::to_string(least) + ", but the status is passed");
    }
  }

  static std::string name_of(const ReferenceResult& reference) {
    return "references." + reference.id + ".";
  }

  void examine_references() {
    std::set<std::string> ids;
    for (const ReferenceResult& reference : evaluation_.references) {
      if (!ids.insert(reference.id).second) note(name_of(reference) + "id", "it appears twice");
      if (!reference.unavailable.empty() || !evaluation_.timing) continue;
      examine_summary(name_of(reference) + "timing.", reference.timing);
      examine_percent(reference);
      examine_counts(reference);
    }
  }

  /// The percentage and its interval against the samples; against the medians where there are none.
  void examine_percent(const ReferenceResult& reference) {
    if (!reference.percent_of_reference) return;
    const std::string field = name_of(reference) + "percent.";
    const Percent& said = *reference.percent_of_reference;
    const double wider = context_.percent_units_rounding + context_.percent_rounding * said.value;
    if (!(said.low <= said.value + wider && said.value - wider <= said.high)) {
      note(field + "value", number(said.value) + "% is outside of its own interval, " +
                                number(said.low) + "% to " + number(said.high) + "%");
    }
    const Samples& kernel = reference.kernel_samples_ns.empty() ? evaluation_.timing->samples_ns
                                                                : reference.kernel_samples_ns;
    if (kernel.empty() || reference.timing.samples_ns.empty()) {
      // What stands beside a reference of another process are times of their own.
      if (reference.id.starts_with("pytorch_") || evaluation_.timing->median_ns <= 0) return;
      const double ratio = 100.0 * static_cast<double>(reference.timing.median_ns) /
                           static_cast<double>(evaluation_.timing->median_ns);
      expect_near(field + "value", said.value, ratio, "the medians");
      return;
    }
    const Percent made = percent_of_reference(reference.timing.samples_ns, kernel);
    expect_near(field + "value", said.value, made.value, "the samples");
    expect_near(field + "low", said.low, made.low, "the samples");
    expect_near(field + "high", said.high, made.high, "the samples");
  }

  void expect_near(const std::string& field, double said, double made, const char* from) {
    const double tolerance =
        context_.percent_units_rounding + context_.percent_rounding * std::abs(made) + 1e-6;
    if (std::abs(said - made) <= tolerance) return;
    note(field, number(said) + "%, but " + from + " give " + number(made) + "%");
  }

  /// Times that were taken in turns are as many, unless spare runs of a slow kernel were left out.
  void examine_counts(const ReferenceResult& reference) {
    const Samples& kernel = reference.kernel_samples_ns.empty() ? evaluation_.timing->samples_ns
                                                                : reference.kernel_samples_ns;
    constexpr std::size_t fewest = 12;
    constexpr std::int64_t slow_ns = 4'000'000;
    const std::size_t all = reference.timing.samples_ns.size();
    const bool slow = evaluation_.timing->median_ns >= slow_ns && kernel.size() >= fewest;
    if (kernel.size() == all || (slow && kernel.size() < all)) return;
    note(name_of(reference) + "timing.samples_ns", std::to_string(all) + " of them, but " +
                                                       std::to_string(kernel.size()) +
                                                       " of the kernel's beside them");
  }

  void examine_noise() {
    const Samples& repeated = evaluation_.repeated_headline_ns;
    if (repeated.empty()) return;
    const ReferenceResult* headline = evaluation_.headline();
    const std::size_t samples = headline ? headline->timing.samples_ns.size() : 0;
    if (repeated.size() > samples || repeated.size() < samples / 3) {
      note("repeated_headline_ns",
           "expected as many as of the first reference's samples_ns, or a third of them");
      return;
    }
    expect_equal("reference_noise_ppm", evaluation_.reference_noise_ppm,
                 noise_ppm(headline->timing.samples_ns, repeated), "the samples");
  }

  /// The errors of a kernel that passed.
  void examine_errors() {
    if (!evaluation_.errors) return;
    const ErrorStats& errors = *evaluation_.errors;
    const double rounded_up = 1.0 + context_.errors_rounding;
    if (errors.failing > 0) {
      note("errors.failing", std::to_string(errors.failing) + ", but the status is passed");
    }
    if (errors.unwritten > 0) {
      note("errors.unwritten", std::to_string(errors.unwritten) + ", but the status is passed");
    }
    if (errors.first_failing != -1) {
      note("errors.first_failing", "an element, but the status is passed");
    }
    if (!(errors.worst_tolerance_ratio <= 1.0 + context_.shares_rounding)) {
      note("errors.worst_tolerance_ratio",
           number(errors.worst_tolerance_ratio) + ", but what passed is at most 1");
    }
    if (!(errors.rms <= errors.max_abs * rounded_up * rounded_up)) {
      note("errors.rms",
           number(errors.rms) + " is more than the largest error, " + number(errors.max_abs));
    }
    // Older rows keep no size of the truth.
    if (!problem_ || errors.truth_rms <= 0) return;
    ErrorStats rounded = errors;
    rounded.truth_rms *= rounded_up * rounded_up;
    if (auto rejection = judge_sizes(rounded, problem_->tolerance)) {
      const bool of_rms = rejection->check == "rms error";
      note(of_rms ? "errors.rms" : "errors.max_abs",
           rejection->message + ", but the status is passed");
    }
  }

  void examine_witness() {
    for (const Witness& witness : evaluation_.witnesses) {
      if (auto rejection = check_clock(witness)) {
        note("witness", rejection->message + ", but the status is passed");
      }
    }
  }

  /// The badges of a kernel that passed, against their evidence and against the notes.
  void examine_badges() {
    for (const BadgeDescription& one : badge_table) {
      const std::string badge(one.name);
      const bool held = evaluation_.badges.has(one.badge);
      // "strict: an element misses …", "strict asks for an FP32 output"
      const bool refused = evaluation_.badge_notes.find(badge + ": ") != std::string::npos ||
                           evaluation_.badge_notes.find(badge + " asks") != std::string::npos;
      if (held && refused) {
        note("badge_notes", "they say why " + badge + " was refused, but it was given");
      }
      if (!held && !refused && one.in_every_record) {
        note("badges", badge + " is missing, and badge_notes do not say why");
      }
    }
    if (!evaluation_.evidence) {
      if (evaluation_.badges.has(Badge::strict) && problem_ && !has_fp32_outputs(*problem_)) {
        note("badges", "strict asks for an FP32 output");
      }
      return;
    }
    examine_strict(*evaluation_.evidence);
    examine_robust(*evaluation_.evidence);
    examine_deterministic(*evaluation_.evidence);
    examine_other_sizes(*evaluation_.evidence);
  }

  void examine_strict(const BadgeEvidence& evidence) {
    const std::string field = "evidence.strict_share";
    const bool strict = evaluation_.badges.has(Badge::strict);
    const bool fp32 = problem_ && has_fp32_outputs(*problem_);
    if (fp32 != evidence.strict_share.has_value()) {
      note(field, fp32 ? "missing" : "strict asks for an FP32 output");
      return;
    }
    if (!evidence.strict_share) {
      if (strict) note("badges", "strict asks for an FP32 output");
      return;
    }
    const double share = *evidence.strict_share;
    if (strict && !(share <= 1.0 + context_.shares_rounding)) {
      note("badges", "strict, but evidence.strict_share is " + number(share));
    }
    if (!strict && share < 1.0 - context_.shares_rounding) {
      note("badges", "not strict, but evidence.strict_share is " + number(share));
    }
  }

  void examine_robust(const BadgeEvidence& evidence) {
    if (!evaluation_.badges.has(Badge::robust) || !problem_) return;
    for (const auto& [name, share] : evidence.stress) {
      if (share <= 1.0 + context_.shares_rounding) continue;
      note("evidence.stress." + name,
           number(share) + " of the tolerance, but the kernel is said to be robust");
    }
    for (std::size_t i = 0; i < problem_->stress_cases.size(); ++i) {
      // Judges before there were digests of rows had the first of today's cases.
      if (!is_row_digest(evaluation_.harness) && i >= fewest_stress_cases) break;
      const std::string& name = problem_->stress_cases[i].name;
      const bool is_there = std::any_of(evidence.stress.begin(), evidence.stress.end(),
                                        [&](const auto& one) { return one.first == name; });
      const std::vector<std::string>& left_out = evaluation_.stress_left_out;
      if (!is_there && std::find(left_out.begin(), left_out.end(), name) == left_out.end())
        note("evidence.stress." + name, "missing, but the kernel is said to be robust");
    }
  }

  void examine_deterministic(const BadgeEvidence& evidence) {
    const bool deterministic = evaluation_.badges.has(Badge::deterministic);
    std::size_t runs = 0;
    for (const std::vector<std::string>& group : evidence.digests) runs += group.size();
    if (runs < fewest_digests) {
      note("evidence.digests",
           std::to_string(runs) + ", but expected " + std::to_string(fewest_digests));
    } else if (deterministic != evidence.repeats_agree()) {
      note("evidence.digests", std::string(evidence.repeats_agree() ? "equal" : "different") +
                                   ", but the kernel is said to be " +
                                   (deterministic ? "" : "not ") + "deterministic");
    }
  }

  void examine_other_sizes(const BadgeEvidence& evidence) {
    const std::vector<SizeResult>& results = evidence.other_sizes;
    const bool held = evaluation_.badges.has(Badge::any_size);
    const std::string field = "evidence.other_sizes";
    if (held && results.empty()) note(field, "missing, but the kernel is said to have any_size");
    for (const SizeResult& one : results) {
      const std::string there = "at " + sizes_text(one.sizes) + ": ";
      if (held && one.status != Status::passed) {
        note(field, there + to_string(one.status) + ", but the kernel is said to have any_size");
      }
      if (one.status == Status::passed &&
          !(one.tolerance_share <= 1.0 + context_.shares_rounding)) {
        note(field, there + number(one.tolerance_share) + " of the tolerance, but right");
      }
      if (problem_ && !may_have(*problem_, one.sizes)) {
        note(field, there + "no sizes that the problem has besides its own");
      }
    }
  }

  /// Whether they are of the axes that may vary, and within their ranges.
  static bool may_have(const Problem& problem, const Sizes& sizes) {
    return sizes.size() == problem.other_sizes.size() &&
           std::all_of(sizes.begin(), sizes.end(), [&](const auto& one) {
             const auto found = problem.other_sizes.find(one.first);
             return found != problem.other_sizes.end() && one.second >= found->second.first &&
                    one.second <= found->second.second;
           });
  }

  void examine_resources() {
    std::set<std::string> names;
    for (const KernelResources& kernel : evaluation_.resources) {
      const std::string field = "resources." + kernel.name;
      if (!names.insert(kernel.name).second) note(field, "it appears twice");
      if (kernel.registers > max_registers) {
        note(field + ".registers", std::to_string(kernel.registers) + ", but a thread has " +
                                       std::to_string(max_registers) + " at most");
      }
    }
  }

  const Evaluation& evaluation_;
  const EvaluationContext& context_;
  const Problem* problem_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> contradictions(const Evaluation& evaluation,
                                        const EvaluationContext& context) {
  return Examination(evaluation, context).found();
}

}  // namespace rekernel
