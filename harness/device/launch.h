#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "ops/program.h"
#include "ops/result.h"

namespace rekernel {

/// Device memory that a name in a plan stands for.
struct BufferView {
  CUdeviceptr pointer = 0;
  std::int64_t bytes = 0;
};
using Bindings = std::map<std::string, BufferView>;

/// Something that computes a problem's output from its inputs in device memory: a candidate's plan
/// or a library reference. Reads and writes the buffers that it was made for.
class Runnable {
 public:
  virtual ~Runnable() = default;
  /// Issues all work on the stream, without waiting. Throws CudaError when a launch is refused.
  virtual void enqueue(CUstream stream) = 0;
  /// What was chosen inside, for reports: an engine, an algorithm. May be empty.
  virtual std::string details() const { return {}; }
};

/// A compiled program with every argument resolved, ready to be issued again and again.
/// `bindings` names every tensor and workspace of the plan. Errors: a block, cluster, shared-memory
/// or cooperative size that this device does not take, or a tensor map that the driver refuses.
Result<std::unique_ptr<Runnable>> make_runnable(const Program& program,
                                                const CompiledProgram& compiled,
                                                const Bindings& bindings,
                                                const DeviceProperties& device);

}  // namespace rekernel
