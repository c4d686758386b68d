#pragma once

#include <string>
#include <vector>

#include "harness/gpu/exclusive.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/progress.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Those that `--all` or the argument `problem` names, for the command of this name.
Result<std::vector<const Problem*>> chosen_problems(const ParsedArguments& parsed,
                                                    const std::string& command);

/// Waits until no other `rekernel` has the GPU, and says who has it.
Result<GpuLock> locked_gpu(int ordinal, Progress& progress);

}  // namespace rekernel
