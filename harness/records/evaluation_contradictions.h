#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/gpu/cuda.h"

namespace rekernel {

/// What an evaluation that was written down leaves out, and how it was rounded.
struct EvaluationContext {
  std::optional<DeviceProperties> device;  ///< where its attributes are known
  double errors_rounding = 0;              ///< relative
  double shares_rounding = 0;              ///< relative, of what is allowed
  double percent_rounding = 0;             ///< relative
  double percent_units_rounding = 0;       ///< absolute
};

/// Everything in an evaluation that cannot be as it says: summaries that are not those of the
/// samples, times that contradict each other or the speed of light, errors and evidence that
/// contradict the status and the badges. A line each, "timing.median_ns: 1, but its samples give
/// 512345", by the names of the evaluation's JSON. An evaluation without any may still be false.
std::vector<std::string> contradictions(const Evaluation& evaluation,
                                        const EvaluationContext& context);

}  // namespace rekernel
