#pragma once

#include <string>
#include <vector>

#include "harness/process/isolate.h"
#include "ops/result.h"

namespace rekernel {

/// Whether REKERNEL_SANDBOX=off asks for children with limits alone, under sanitizers and profilers
/// for one.
bool sandbox_is_refused();

/// Which devices a sandbox has beside /dev/null and its like.
enum class SandboxDevices { none, gpu };

/// The bubblewrap that children run in, or why they run in limits alone: none is installed, it does
/// not work here (as in most containers), or it was refused. Tried once a process.
Result<std::string> sandbox();

/// What one child needs beside what every child has: a program that is captured, and its compilers.
struct SandboxAdditions {
  std::vector<std::string> readable;   ///< folders and files
  std::vector<std::string> writable;   ///< folders
  bool tools = false;                  ///< what PATH leads to, wherever it lies
  std::vector<std::string> variables;  ///< "NAME=value" each
};

/// What python3 needs: the tools on PATH, and the absolute folders of PYTHONPATH. It writes no
/// bytecode.
SandboxAdditions python_additions();

/// run_child inside the sandbox, or without one if there is none. The child gets only those
/// variables that decide which libraries and devices are used, unless a sandbox is refused.
Result<ChildOutcome> run_sandboxed(ChildCommand command, SandboxDevices devices,
                                   const SandboxAdditions& additions = {});

}  // namespace rekernel
