#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/definition/definition.h"
#include "ops/problem.h"

namespace rekernel::definition {

/// The statement of an output that is an index of an extreme, an argmax or argmin alone; null of
/// others.
const CheckedStatement* extreme_statement(const Definition& definition, std::string_view output);

/// What must hold of such an output: each index is in its range, what stands there equals the
/// extreme, and along a recurrence no index comes twice.
std::vector<Invariant> extreme_invariants(const Definition& definition, const std::string& output);

/// The largest absolute value of a statement that reads outputs, as a candidate wrote them, and
/// truths (`truth_y`). Errors begin with "column N: ".
Result<Invariant> make_invariant(const Definition& definition, const std::string& name,
                                 std::string_view violation, double bound);

}  // namespace rekernel::definition
