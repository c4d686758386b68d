#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

/// A problem of the catalog at other sizes.
inline Problem sized_problem(std::string_view id, const Sizes& sizes = {}) {
  const Problem* problem = find_problem(id);
  if (!problem) throw std::invalid_argument("no problem " + std::string(id));
  Result<Problem> sized = problem_at(*problem, sizes);
  if (!sized) throw std::invalid_argument(sized.error().message);
  return std::move(*sized);
}

}  // namespace rekernel
