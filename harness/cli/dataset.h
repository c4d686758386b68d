#pragma once

#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// The subcommands of `rekernel dataset` that need a GPU.
int dataset_judge_command(const std::vector<std::string>& arguments);
int dataset_import_command(const std::vector<std::string>& arguments);

/// The name of the GPU that has this number, or why there is none.
Result<std::string> gpu_name(int ordinal);

}  // namespace rekernel
