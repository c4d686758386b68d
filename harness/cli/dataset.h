#pragma once

#include <string>

#include "ops/result.h"

namespace rekernel {

/// The name of the GPU that has this number, or why there is none.
Result<std::string> gpu_name(int ordinal);

}  // namespace rekernel
