#pragma once

#include <string>

namespace rekernel::testing {

struct ProgramOutcome {
  int exit_status = -1;
  std::string output;  ///< both streams
};

/// Runs `rekernel ARGUMENTS` in a folder, through the shell; `variables` ("NAME=value …") go before
/// it.
ProgramOutcome run_program(const std::string& arguments, const std::string& folder,
                           const std::string& variables = "");

}  // namespace rekernel::testing
