#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/gpu/cuda.h"
#include "harness/gpu/identity.h"
#include "harness/process/isolate.h"
#include "harness/process/sandbox.h"
#include "ops/result.h"

namespace rekernel {

/// A process of this program (a hidden command of it) that sees one GPU alone and does what it is
/// told over a socket, and the thread that watches it, which it dies with. It is ended when this
/// goes.
class ServedProcess {
 public:
  /// It finds `inherited` from first_served_descriptor on; they are closed here. Past `lifetime` it
  /// is killed. `additions` is what it needs beside what every such process has.
  static Result<std::unique_ptr<ServedProcess>> start(const std::string& command,
                                                      const GpuIdentity& gpu,
                                                      std::vector<int> inherited,
                                                      std::chrono::seconds lifetime,
                                                      SandboxAdditions additions = {});

  /// How it ended: by itself, now that nobody tells it anything any more, or stopped.
  const Result<ChildOutcome>& end();
  /// How it ended, killed at once if it has not yet.
  const Result<ChildOutcome>& kill();

  /// It is about to end: several can leave a GPU at the same time.
  void stop() { stop_.close(); }

  ~ServedProcess() { stop(); }

 private:
  ServedProcess(ChildCommand command, const GpuIdentity& gpu, SandboxAdditions additions,
                FileDescriptor watched, FileDescriptor stop);

  FileDescriptor watched_;
  FileDescriptor stop_;
  std::shared_future<Result<ChildOutcome>> outcome_;
};

/// Where a served process finds what it inherits.
constexpr int first_served_descriptor = first_inherited_descriptor + 1;

/// A process that will serve for as long as it is kept.
constexpr std::chrono::seconds unlimited_lifetime = std::chrono::hours(24 * 365);

/// What a served process calls first: it locks itself down, cannot open the files of other GPUs
/// from here on, and leaves its cache entries to who started it. Not so under REKERNEL_SANDBOX=off.
void settle_as_served_process();
/// That part of it which holds for what the process becomes, too.
void see_own_gpu_alone();

/// The GPU of a served process, opened: where its parent works on several GPUs, when no other
/// process that it started is doing so. The driver makes contexts one after the other, on all GPUs
/// of a machine together: those that begin at the same time would all end late, instead of one
/// after the other.
Result<Device> open_in_turn();

}  // namespace rekernel
