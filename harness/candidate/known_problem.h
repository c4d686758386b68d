#pragma once

#include <string>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// The problem of the catalogue with this id. The error names the id that was probably meant, and
/// all that there are.
Result<const Problem*> known_problem(const std::string& id);

}  // namespace rekernel
