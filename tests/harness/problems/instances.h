#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

/// A problem of the catalog at other sizes; throws where there is none.
inline Problem instance(const std::string& id, const Sizes& sizes) {
  const Problem* problem = find_problem(id);
  if (!problem) throw std::logic_error("no problem " + id);
  Result<Problem> at = problem_at(*problem, sizes);
  if (!at) throw std::logic_error(at.error().message);
  return std::move(*at);
}

}  // namespace rekernel
