#include "reference/sandboxed_python.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rekernel {

Result<SandboxedPython> SandboxedPython::start(Start start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{std::string("pipe: ") + std::strerror(errno)};
  SandboxedPython process;
  process.watched_ = FileDescriptor(ends[0]);
  process.stop_ = FileDescriptor(ends[1]);

  ChildCommand command;
  command.arguments = {"/usr/bin/env", "python3", "-c", std::move(start.script)};
  command.arguments.insert(command.arguments.end(), start.arguments.begin(), start.arguments.end());
  constexpr int threads = 64;
  command.deadline = start.lifetime;
  command.limits.processor_time = threads * start.lifetime;
  command.limits.file_bytes = start.file_bytes;
  command.limits.open_files = 4096;
  command.stop = process.watched_.get();
  command.inherited = std::move(start.descriptors);
  process.outcome_ =
      std::async(std::launch::async, [command = std::move(command), devices = start.devices,
                                      additions = std::move(start.additions)] {
        return run_sandboxed(command, devices, additions);
      });
  return process;
}

}  // namespace rekernel
