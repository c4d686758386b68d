#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// A program of others that is run for what it prints.
struct ToolCommand {
  std::vector<std::string> arguments;  ///< the program first, found as a shell finds it
  std::string input;
  std::optional<std::vector<std::string>> environment;  ///< "NAME=value" each; our own if absent
  std::chrono::milliseconds deadline{0};
  int stop = -1;  ///< as of ChildCommand
};

struct ToolOutcome {
  std::optional<int> exit_status;  ///< nothing where it was killed or died
  bool late = false;               ///< killed at its deadline
  std::string output;
  std::string last_words;  ///< the last line of standard error, or why there is none

  bool good() const { return exit_status == 0; }
};

/// The exit status of a shell that finds no such program.
inline constexpr int no_such_program = 127;

/// Runs it to its end, without the limits of a child that holds strangers' code.
Result<ToolOutcome> run_tool(const ToolCommand& tool);

/// The text as one word of a shell.
std::string shell_quoted(const std::string& text);

}  // namespace rekernel
