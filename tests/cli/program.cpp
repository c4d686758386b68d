#include "program.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>

namespace rekernel::testing {

ProgramOutcome run_program(const std::string& arguments, const std::string& folder,
                           const std::string& variables) {
  return run_shell(variables + " \"" + REKERNEL_PROGRAM + "\" " + arguments, folder);
}

ProgramOutcome run_shell(const std::string& commands, const std::string& folder) {
  const std::string command = "cd \"" + folder + "\" && { " + commands + "; } 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  ProgramOutcome outcome;
  std::array<char, 4096> chunk;
  for (std::size_t count; (count = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
    outcome.output.append(chunk.data(), count);
  }
  outcome.exit_status = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

}  // namespace rekernel::testing
