#include "harness/cli/search_references.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/terminal/suggestion.h"

namespace rekernel {

std::vector<std::string> known_references(const std::string& problem) {
  std::vector<std::string> ids = library_reference_ids(problem);
  const Problem* found = find_problem(problem);
  if (!found) return ids;
  for (std::string& id : pytorch_ids(*found)) ids.push_back(std::move(id));
  return ids;
}

std::vector<std::string> reference_ids(std::vector<std::string> ids, const std::string& problem) {
  const std::vector<std::string> known = known_references(problem);
  for (std::string& id : ids) {
    if (id == "headline" && !known.empty()) id = known.front();
  }
  return ids;
}

Result<Ok> check_references(const Header& header) {
  const std::vector<std::string> known = known_references(header.problem);
  for (const std::string& id : header.settings.references) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    return Error{"search " + header.name + ": unknown reference '" + one_line(id, 64) + "'" +
                 did_you_mean(id, known) + " of " + header.problem + ": expected " +
                 (known.empty() ? "none" : joined(known))};
  }
  return Ok{};
}

}  // namespace rekernel
