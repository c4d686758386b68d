#pragma once

#include <functional>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"

namespace rekernel {

/// Whether a candidate's verdict leaves the badge `any_size` to be decided if it passes: its plan
/// is written in axes, and its evaluation is one that gives badges.
bool may_ask_for_other_sizes(const Candidate& candidate, const EvaluateOptions& options);

/// How a launcher evaluates a candidate at one choice of sizes.
struct SizedEvaluator {
  std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)> evaluate;
  /// Compiles it for the cache; several threads call it at once.
  std::function<void(const Candidate&)> compile;
};

/// Judges a candidate in axes at sizes that are drawn (drawn_instances), then judges and times it
/// at those that are always the same (fixed_instances), until it is not right somewhere. All right
/// is the badge `any_size`; what is wrong costs that badge alone, and a note says where and how.
void judge_at_other_sizes(const Candidate& candidate, const EvaluateOptions& options,
                          const SizedEvaluator& evaluator, Evaluation& result);

}  // namespace rekernel
