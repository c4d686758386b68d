#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "harness/base/file_descriptor.h"
#include "harness/gpu/exclusive.h"

namespace rekernel {

/// Takes a GPU, which is had as long as what comes back lives. The error says why it cannot be had.
using TakeGpu = std::function<Result<std::shared_ptr<void>>()>;

/// By the GPU's lock, from whoever else measures there; null where there is no GPU (an empty UUID),
/// and nobody to wait for.
TakeGpu take_alone(const std::string& uuid, std::optional<GpuLock::Clock::time_point> deadline,
                   GpuLock::OnWait on_wait);

/// The GPU for a process that asks for it when it is ready: it writes a byte to a socket and reads
/// the answer, a byte once it has the GPU, or the end where that cannot be had. So what takes it
/// long before that keeps nobody waiting.
class GpuTurn {
 public:
  static Result<std::unique_ptr<GpuTurn>> offer(TakeGpu take);
  /// To be called when the process has ended, which releases the GPU.
  ~GpuTurn() { theirs_.close(); }

  /// The process's end of the socket, for it to inherit.
  int take_their_end() { return theirs_.release(); }

 private:
  GpuTurn(FileDescriptor ours, FileDescriptor theirs)
      : ours_(std::move(ours)), theirs_(std::move(theirs)) {}
  void hand_over(const TakeGpu& take);

  FileDescriptor ours_, theirs_;
  std::shared_ptr<void> held_;
  std::jthread handing_over_;  ///< ends before the rest goes
};

}  // namespace rekernel
