#pragma once

#include <cstdint>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// Terms of all reductions that stand in no other reduction, together: what an element costs.
std::int64_t top_level_terms(const Expression& expression);

/// The reductions of an expression that stand in no other one, from left to right.
std::vector<const Expression*> top_level_reductions(const Expression& expression);

/// The same statements, where a long reduction with few results became two: one over slices of its
/// longest index, and one over the slices' results. `definition` gets the tensors in between.
Definition with_slices(const Definition& definition);

}  // namespace rekernel::definition
