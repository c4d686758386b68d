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

/// `--problem FILE` for a command: problems that no project has, programs of Python among them.
void add_problem_option(boost::program_options::options_description& options);

/// Makes known what that option names, before anything asks for a problem. A program is imported at
/// its first use, which takes seconds; what was made of it is kept in the cache.
Result<std::vector<const Problem*>> take_problems(const ParsedArguments& parsed);

/// The problem that a command is for: its argument `key`, or else the one that --problem names.
Result<const Problem*> asked_problem(const ParsedArguments& parsed, const char* key,
                                     const std::vector<const Problem*>& taken);

/// Waits until no other `rekernel` has the GPU, and says who has it.
Result<GpuLock> locked_gpu(int ordinal, Progress& progress);

}  // namespace rekernel
