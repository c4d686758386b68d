#pragma once

#include <memory>
#include <vector>

#include "harness/device/launch.h"

namespace rekernel {

/// A program of the harness itself, loaded, with workspaces that nobody else has.
class OwnProgram {
 public:
  /// `bindings` names all that the program reads and writes but its workspaces. A plan that this
  /// device does not take is a defect, which is thrown; so is CudaError when memory is short.
  OwnProgram(const Program& program, const CompiledProgram& compiled, Bindings bindings,
             const DeviceProperties& device);

  void enqueue(const Stream& stream) const { runnable_->enqueue(stream.get()); }

 private:
  std::vector<DeviceBuffer> workspaces_;
  std::unique_ptr<Runnable> runnable_;
};

}  // namespace rekernel
