#include "harness/candidate/known_problem.h"

#include "harness/problems/catalog.h"

namespace rekernel {

Result<const Problem*> known_problem(const std::string& id) {
  if (const Problem* problem = find_problem(id)) return problem;
  return unknown_problem(id);
}

}  // namespace rekernel
