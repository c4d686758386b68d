#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Checks that a shell can read the prefix and finds its program in `environment` ("NAME=value";
/// our own if absent). The error names what was looked for, and where. Runs none of it.
Result<Ok> check_prefix(const std::string& prefix,
                        const std::optional<std::vector<std::string>>& environment);

}  // namespace rekernel
