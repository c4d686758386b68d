#pragma once

#include "harness/evaluation/request.h"

namespace rekernel::testing {

/// What the referee of fake_judges.cpp does in one evaluation.
enum class Behaviour {
  goes_on,
  ends,
  dies,
  never_starts,
  never_ends,
  talks_nonsense,
  passes,               ///< gives a verdict of candidates that are right at any sizes
  passes_at_own_sizes,  ///< and of those that are wrong at others
};

/// It is told by the seed.
inline Behaviour behaviour_of(const EvaluateOptions& options) {
  return static_cast<Behaviour>(options.seed.value_or(0));
}

}  // namespace rekernel::testing
