#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// A word of an expression in a plan.
struct PlanToken {
  enum class Kind { name, number, symbol, unknown, end };
  Kind kind = Kind::end;
  std::string_view text;
  int column = 1;  ///< of its first character, from 1
};

class PlanTokens {
 public:
  /// The text must outlive it.
  explicit PlanTokens(std::string_view text) : text_(text) {}
  PlanToken next();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// `+`, `-`, `*`, `/` and `//` (both round down), `%`, `min`, `max` or `ceil_div` of two integers;
/// an error where the value is none, or none of 64 bits.
Result<std::int64_t> plan_value_of(std::string_view op, std::int64_t a, std::int64_t b);

}  // namespace rekernel
