#include "harness/candidate/known_problem.h"

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/problems/catalog.h"

namespace rekernel {

Result<const Problem*> known_problem(const std::string& id) {
  constexpr std::size_t longest_name = 64;
  if (const Problem* problem = find_problem(id)) return problem;
  std::vector<std::string> ids;
  for (const Problem& problem : catalog()) ids.push_back(problem.id);
  const std::string meant = nearest(id, ids);
  return Error{"unknown problem '" + one_line(id, longest_name) + "'" +
               (meant.empty() ? "" : " (did you mean '" + meant + "'?)") + ": expected one of " +
               joined(ids)};
}

}  // namespace rekernel
