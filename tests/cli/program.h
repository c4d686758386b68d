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

/// Runs commands in a folder.
ProgramOutcome run_shell(const std::string& commands, const std::string& folder);

}  // namespace rekernel::testing
