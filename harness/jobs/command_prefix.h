#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// That a shell can read the prefix and finds its program in `environment` ("NAME=value" each; our
/// own if absent). The error names what was looked for, and where. Nothing of it is run.
Result<Ok> check_prefix(const std::string& prefix,
                        const std::optional<std::vector<std::string>>& environment);

}  // namespace rekernel
