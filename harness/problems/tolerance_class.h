#pragma once

#include <optional>
#include <string_view>

#include "ops/definition/cost.h"
#include "ops/problem.h"

namespace rekernel {

/// The bounds of a class of tolerance for a definition with this much work of a matrix unit; none
/// of an unknown class. Where they come from: ops/TOLERANCES.md.
std::optional<Tolerance> tolerance_of_class(std::string_view name, const definition::Cost& cost);

/// The FP16 products that a product of the definition takes within such a tolerance.
int products_within(const Tolerance& tolerance, const definition::Cost& cost);

}  // namespace rekernel
