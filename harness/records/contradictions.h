#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/gpu/cuda.h"
#include "harness/records/record.h"

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

/// The same of every row of a bench, and of what the file says of all rows. Lines begin with
/// `where` and the row: "results/h200/bench.json: rows[3] (softmax/online): median_ns: …".
std::vector<std::string> contradictions(const Bench& bench, const std::string& where);

/// Between files: a kernel that passed on one device and computed something wrong on another.
std::vector<std::string> contradictions_between(
    const std::vector<std::pair<std::filesystem::path, Bench>>& benches);

}  // namespace rekernel
