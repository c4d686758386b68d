#pragma once

#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// A text and the name under which a difference shows it.
struct LabelledText {
  std::string label;
  std::string_view text;
};

/// The unified difference of two texts, as GNU diff prints it; empty if they are equal. An error
/// where diff is not installed.
Result<std::string> unified_difference(const LabelledText& before, const LabelledText& after);

}  // namespace rekernel
