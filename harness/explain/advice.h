#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/candidate/status.h"

namespace rekernel {

/// What a verdict means for the author of a candidate.
struct Advice {
  Status status = Status::passed;
  /// A part of the verdict's check or message that tells this case; empty: the status in general.
  std::string_view sign;
  std::string_view meaning;
  std::string_view cause;   ///< what usually causes it
  std::string_view change;  ///< what to try
};

/// Every row of the table: special cases before the general row of their status, which each has.
std::span<const Advice> all_advice();

/// The first row that fits a verdict.
const Advice& advice_for(Status status, std::string_view check, std::string_view message);

}  // namespace rekernel
