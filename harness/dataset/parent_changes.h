#pragma once

#include <map>
#include <string>

#include "harness/dataset/differences.h"
#include "harness/dataset/round_memory.h"
#include "ops/result.h"

namespace rekernel {

/// What a candidate changed of its parent, as unified differences; of the plan, what runs.
struct ParentChange {
  std::string code;
  std::string plan;
};
using ParentChanges = std::map<std::string, ParentChange>;  ///< by candidate

/// Of a round's candidates, to the first of RoundMemory::parents. Fails where GNU diff is missing.
Result<ParentChanges> parent_changes(const RoundMemory& round, TextComparer& comparer);

}  // namespace rekernel
