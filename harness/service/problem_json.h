#pragma once

#include <string>

#include "ops/result.h"

namespace rekernel::service {

/// {"problems": [{"id", "title", "group"}, …]} of the catalog.
std::string problems_json();

/// One problem for whoever writes a kernel for it: formula, tensors, tolerance, `problem.h`. The
/// error names ids that are called alike. Made once for each problem.
Result<std::string> problem_json(const std::string& id);

}  // namespace rekernel::service
