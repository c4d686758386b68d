#pragma once

#include <cstdint>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// How large a problem may be.
struct SmallerThan {
  std::int64_t operations = 0;
  std::int64_t bytes = 0;  ///< of all tensors
};

/// What the host computes in a few hundredths of a second.
constexpr SmallerThan small_for_the_host{1'000'000, 1 << 18};

/// The problem at sizes near the lower ends of its other sizes, equal in every run. The error says
/// why there are none: a constraint that holds nowhere near, or sizes that are fixed and large.
Result<Problem> small_instance(const Problem& problem, SmallerThan limit = small_for_the_host);

}  // namespace rekernel
