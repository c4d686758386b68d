#pragma once

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/process/isolate.h"
#include "harness/process/sandbox.h"

namespace rekernel {

/// A `python3` that runs a script in the sandbox, for hours, beside this process. Ended when this
/// goes.
class SandboxedPython {
 public:
  struct Start {
    std::string script;
    std::vector<std::string> arguments;
    /// Taken over; the script finds them from first_inherited_descriptor on.
    std::vector<int> descriptors;
    std::int64_t file_bytes = 0;
    std::chrono::seconds lifetime{0};
    SandboxDevices devices = SandboxDevices::none;
    SandboxAdditions additions;
  };
  static Result<SandboxedPython> start(Start start);

  /// How it ended; waits until then.
  Result<ChildOutcome> outcome() { return outcome_.get(); }

 private:
  SandboxedPython() = default;

  // In the order in which one needs the next: closing `stop_` ends the process, whose end the
  // future waits for, and which is told so by the other end of the pipe.
  FileDescriptor watched_;
  std::future<Result<ChildOutcome>> outcome_;
  FileDescriptor stop_;
};

}  // namespace rekernel
