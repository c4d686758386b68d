#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "harness/base/file_descriptor.h"
#include "harness/gpu/exclusive.h"

namespace rekernel {

/// The GPU for a process that asks for it when it is ready: it writes a byte to a socket and reads
/// the answer, a byte once it has the GPU for itself, or the end where it was not free in time. So
/// what takes it long before that keeps nobody waiting.
class GpuTurn {
 public:
  /// By the device's UUID; empty where there is no GPU, and nobody to wait for.
  static Result<std::unique_ptr<GpuTurn>> offer(const std::string& uuid,
                                                GpuLock::Clock::time_point deadline,
                                                GpuLock::OnWait on_wait);
  /// To be called when the process has ended, which releases the GPU.
  ~GpuTurn() { theirs_.close(); }

  /// The process's end of the socket, for it to inherit.
  int take_their_end() { return theirs_.release(); }

 private:
  GpuTurn(FileDescriptor ours, FileDescriptor theirs)
      : ours_(std::move(ours)), theirs_(std::move(theirs)) {}
  void hand_over(const std::string& uuid, GpuLock::Clock::time_point deadline,
                 const GpuLock::OnWait& on_wait);

  FileDescriptor ours_, theirs_;
  std::optional<GpuLock> lock_;
  std::jthread handing_over_;  ///< ends before the rest goes
};

}  // namespace rekernel
