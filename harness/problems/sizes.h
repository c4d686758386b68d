#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "harness/base/json.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

/// The axes that may have other sizes, with those that the problem has here.
Sizes sizes_of(const Problem& problem);

/// "rows 3, columns 7".
std::string sizes_text(const Sizes& sizes);

boost::json::object to_json(const Sizes& sizes);
Sizes sizes_from_json(JsonReader reader);

}  // namespace rekernel
