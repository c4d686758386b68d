#pragma once

#include <string>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// The problem of the catalogue with this id, or why there is none (unknown_problem).
Result<const Problem*> known_problem(const std::string& id);

}  // namespace rekernel
