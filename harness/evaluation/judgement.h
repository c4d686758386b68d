#pragma once

#include <optional>

#include "harness/device/error_stats.h"
#include "harness/evaluation/rejection.h"

namespace rekernel {

/// What the referee says of what a run wrote.
struct Judgement {
  std::optional<Rejection> rejection;
  std::optional<ErrorStats> stats;  ///< where the values were compared
  /// False on stress inputs whose truth is not finite everywhere: nothing was compared.
  bool has_finite_truth = true;
};

}  // namespace rekernel
