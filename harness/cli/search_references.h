#pragma once

#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// The references that a search can time beside its candidates: of libraries, then of PyTorch, in
/// the order of the problem's own lists. The first is the headline.
std::vector<std::string> known_references(const std::string& problem);

/// The references' ids, with "headline" as the id of the problem's.
std::vector<std::string> reference_ids(std::vector<std::string> ids, const std::string& problem);

/// Whether all that a search's settings name are known.
Result<Ok> check_references(const Header& header);

}  // namespace rekernel
