#pragma once

#include <string>

#include "ops/definition/device_code.h"

namespace rekernel::definition {

/// What stands before the kernels: headers of the types that occur, and those of our functions that
/// the kernels call.
std::string device_prelude(const Definition& definition, Purpose purpose,
                           const std::string& kernels);

}  // namespace rekernel::definition
