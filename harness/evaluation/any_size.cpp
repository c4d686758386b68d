#include "harness/evaluation/any_size.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/parallel.h"
#include "harness/evaluation/laps.h"
#include "harness/problems/other_sizes.h"
#include "harness/problems/sizes.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

/// Inputs at each choice of sizes.
constexpr int judged_inputs = 3;
/// Samples at those that are timed: more than judge a kernel there, and enough for a median.
constexpr int timed_samples = 20;
/// Each compilation is a process that may take gigabytes.
constexpr unsigned most_compilations = 8;

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

/// The candidate at one choice of sizes, or why it has no plan there.
struct Sized {
  Sizes sizes;
  bool timed = false;
  Result<Candidate> candidate;
};

EvaluateOptions options_for(const EvaluateOptions& options, bool timed) {
  EvaluateOptions own = options;
  own.mode = timed ? Mode::sizes : Mode::errors;
  own.samples = timed ? timed_samples : judged_inputs;
  own.stress = false;
  own.other_sizes = false;
  own.references.clear();
  own.external_references.clear();
  return own;
}

/// Why a candidate does not have the badge; empty where it is right there.
std::string judge_at(const Sized& sized, const EvaluateOptions& options,
                     const SizedEvaluator& evaluator, BadgeEvidence& evidence) {
  SizeResult result;
  result.sizes = sized.sizes;
  std::string message;
  if (!sized.candidate) {
    result.status = Status::invalid_plan;
    message = sized.candidate.error().message;
  } else {
    const EvaluationReport report =
        evaluator.evaluate(*sized.candidate, options_for(options, sized.timed));
    // What keeps a machine from judging is nothing that was found out.
    if (!report.failure.empty()) {
      return "not judged at " + sizes_text(sized.sizes) + ": " + report.failure;
    }
    const Evaluation& found = report.evaluation;
    result.status = found.status;
    message = found.message;
    if (found.errors) result.tolerance_share = found.errors->worst_tolerance_ratio;
    if (sized.timed && found.timing) result.median_ns = found.timing->median_ns;
  }
  const bool is_right = result.status == Status::passed;
  const std::string why =
      std::string(to_string(result.status)) + " at " + sizes_text(sized.sizes) + ": " + message;
  evidence.other_sizes.push_back(std::move(result));
  return is_right ? "" : why;
}

void compile_ahead(const std::vector<Sized>& all, const SizedEvaluator& evaluator) {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, most_compilations);
  for_each_in_parallel(all.size(), threads, [&](std::size_t i) {
    if (all[i].candidate) evaluator.compile(*all[i].candidate);
  });
}

}  // namespace

bool may_ask_for_other_sizes(const Candidate& candidate, const EvaluateOptions& options) {
  return options.other_sizes && options.mode == Mode::verdict && !options.shared_gpu &&
         candidate.is_in_axes() && candidate.sizes.empty();
}

void judge_at_other_sizes(const Candidate& candidate, const EvaluateOptions& options,
                          const SizedEvaluator& evaluator, Evaluation& result) {
  Laps laps(result.split_ns);
  const auto refuse = [&](const std::string& why) {
    result.badge_notes += (result.badge_notes.empty() ? "" : "; ") +
                          std::string(to_string(Badge::any_size)) + ": " + why;
  };
  const Result<std::shared_ptr<const Problem>> problem = problem_of(candidate);
  if (!problem) return refuse(problem.error().message);
  std::vector<Sized> all;
  const auto add = [&](const std::vector<Problem>& instances, bool timed) {
    for (const Problem& one : instances) {
      all.push_back({sizes_of(one), timed, at_sizes(candidate, one)});
    }
  };
  add(drawn_instances(**problem, options.seed ? *options.seed : fresh_seed()), false);
  add(fixed_instances(**problem), true);
  if (all.empty()) return refuse("the problem has no other sizes");
  compile_ahead(all, evaluator);
  if (!result.evidence) result.evidence.emplace();
  laps.lap("other sizes: compile");
  std::string why;
  for (const bool timed : {false, true}) {
    for (std::size_t i = 0; i < all.size() && why.empty(); ++i) {
      if (all[i].timed == timed) why = judge_at(all[i], options, evaluator, *result.evidence);
    }
    laps.lap(timed ? "other sizes: timed" : "other sizes: judged");
  }
  result.badges.set(Badge::any_size, why.empty());
  if (!why.empty()) refuse(why);
}

}  // namespace rekernel
