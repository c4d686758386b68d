#pragma once

#include <span>
#include <string_view>

#include "ops/problem.h"

namespace rekernel {

/// The eight problems, in the order of the published table.
std::span<const Problem> catalog();

/// The problem with this id, or nullptr.
const Problem* find_problem(std::string_view id);

}  // namespace rekernel
