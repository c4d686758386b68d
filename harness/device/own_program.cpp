#include "harness/device/own_program.h"

#include <stdexcept>
#include <utility>

namespace rekernel {

OwnProgram::OwnProgram(const Program& program, const CompiledProgram& compiled, Bindings bindings,
                       const DeviceProperties& device) {
  for (const Workspace& workspace : program.workspaces) {
    workspaces_.emplace_back(workspace.bytes);
    bindings[workspace.name] = {workspaces_.back().get(), workspace.bytes};
  }
  Result<std::unique_ptr<Runnable>> runnable = make_runnable(program, compiled, bindings, device);
  if (!runnable) throw std::runtime_error(runnable.error().message);
  runnable_ = std::move(*runnable);
}

}  // namespace rekernel
