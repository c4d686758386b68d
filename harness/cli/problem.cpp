#include "harness/cli/problem.h"

#include <iostream>

#include "harness/cli/command.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace {

constexpr const char* usage =
    "Usage: rekernel problem check FILE…      read problem files and try what they say\n"
    "       rekernel problem verify [ID…]     definitions beside PyTorch in float64, on a GPU\n"
    "\n"
    "ops/problems/README.md says how a problem's file is written.\n"
    "`rekernel problem COMMAND --help` tells the options of each.\n";

}  // namespace

int problem_command(const std::vector<std::string>& arguments) {
  const std::string name = arguments.empty() ? "" : arguments[0];
  if (name == "--help" || name == "-h") {
    std::cout << usage;
    return exit_good;
  }
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                      arguments.end());
  if (name == "check") return problem_check_command(rest);
  if (name == "verify") return problem_verify_command(rest);
  if (name.empty()) {
    std::cerr << usage;
    return exit_bad_input;
  }
  return bad_input({"problem: unknown command '" + name + "': expected check or verify"});
}

}  // namespace rekernel
