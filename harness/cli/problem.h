#pragma once

#include <string>
#include <vector>

namespace rekernel {

// The commands of `rekernel problem`.
int problem_check_command(const std::vector<std::string>& arguments);
int problem_verify_command(const std::vector<std::string>& arguments);

}  // namespace rekernel
