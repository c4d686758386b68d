#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/report/difference.h"

namespace rekernel {

/// Two texts to be compared.
struct TextPair {
  LabelledText before;
  LabelledText after;
};

/// unified_difference() of each pair, in their order. Many pairs share one process of GNU diff,
/// since starting one takes longer than comparing two kernels.
Result<std::vector<std::string>> unified_differences(std::span<const TextPair> pairs);

}  // namespace rekernel
