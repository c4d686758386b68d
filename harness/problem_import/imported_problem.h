#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// The text of the problem's file that import_problem() makes of a program or a Definition, with
/// the Definition's first workload. It is kept in the cache: `begins` is told where it has to be
/// made, which takes seconds and a python3 that can import torch.
Result<std::string> imported_problem_text(const std::filesystem::path& file,
                                          const std::function<void()>& begins);

}  // namespace rekernel
