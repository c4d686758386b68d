#pragma once

#include <string>
#include <vector>

#include "harness/terminal/arguments.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

// The commands of `rekernel problem`.
int problem_check_command(const std::vector<std::string>& arguments);
int problem_verify_command(const std::vector<std::string>& arguments);
int problem_mutants_command(const std::vector<std::string>& arguments);

/// Those that `--all` or the argument `problem` names, for the command of this name.
Result<std::vector<const Problem*>> chosen_problems(const ParsedArguments& parsed,
                                                    const std::string& command);

}  // namespace rekernel
