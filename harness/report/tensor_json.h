#pragma once

#include <boost/json/fwd.hpp>

#include "ops/problem.h"

namespace rekernel {

/// A tensor as the program's JSON has it: name, dtype, role ("input", "output") and shape.
boost::json::object tensor_json(const Tensor& tensor);

}  // namespace rekernel
