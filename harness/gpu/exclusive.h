#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/gpu/nvml.h"
#include "ops/result.h"

namespace rekernel {

/// One evaluation at a time on a GPU, among all users of the machine that see the same folder for
/// locks. The kernel of the operating system releases it with the process that holds it, however
/// that ends; processes that it starts do not inherit it. Those who wait take turns.
class GpuLock {
 public:
  using Clock = std::chrono::steady_clock;
  /// Called once, if the lock is not free, with who holds it: "process 1234 (rekernel bench)", or
  /// "another process" where that cannot be found out.
  using OnWait = std::function<void(const std::string& holder)>;

  /// By the device's UUID. Waits until it is free; at most until the deadline, past which the error
  /// names the holder.
  static Result<GpuLock> acquire(const std::string& uuid, std::optional<Clock::time_point> deadline,
                                 const OnWait& on_wait);
  /// The same with a folder of the caller's choice.
  static Result<GpuLock> acquire(const std::string& uuid, std::optional<Clock::time_point> deadline,
                                 const OnWait& on_wait, const std::filesystem::path& folder);

  /// Whether somebody waits for it.
  bool is_wanted() const;

 private:
  GpuLock(FileDescriptor file, std::filesystem::path next)
      : file_(std::move(file)), next_(std::move(next)) {}
  FileDescriptor file_;
  std::filesystem::path next_;  ///< whose lock he has who gets this one next
};

/// The first folder, of those that systems have for this, in which everybody may make files and
/// nobody remove another's: all users choose the same one.
Result<std::filesystem::path> shared_lock_folder(std::span<const std::filesystem::path> choices);

/// The process that holds a flock on a file, from the text of /proc/locks.
std::optional<pid_t> lock_holder(const std::string& proc_locks, std::uint64_t device,
                                 std::uint64_t inode);

/// What the system tells of a process, in our own PID namespace.
struct ProcessFacts {
  pid_t parent = 0;  ///< 0 if that is not to be seen
  std::string name;  ///< of the program; empty if that is not to be seen
};
/// Nothing for a process that does not exist.
using ProcessTable = std::function<std::optional<ProcessFacts>(pid_t)>;

/// From /proc. The processes of a PID namespace below ours are seen by their numbers in ours.
std::optional<ProcessFacts> process_facts(pid_t process);

/// Whether the numbers of processes that a driver gives can be taken for ours, and whether it gives
/// all of them. Older drivers number as the initial namespace does, newer ones as the caller's does
/// and leave out what that does not see.
bool sees_all_processes();

/// A process with one or more contexts on a GPU.
struct GpuProcess {
  pid_t pid = 0;
  std::string name;  ///< empty if that is not to be seen
  GpuContext::Kind kind = GpuContext::Kind::compute;
  std::optional<std::int64_t> memory_bytes;
  std::vector<pid_t> ancestors;  ///< the parent first
};

/// "process 1234 (python3)"
std::string to_text(const GpuProcess& process);

/// Who has contexts on a GPU, ours too.
struct GpuOccupants {
  std::vector<GpuProcess> processes;
  /// Why there may be processes that are not listed; empty if there are none. It takes a
  /// measurement then to tell whether the GPU is shared.
  std::string incomplete;
};

/// Puts what NVML lists and what is known of processes together. `sees_all` as
/// sees_all_processes().
GpuOccupants occupants(const Result<std::vector<GpuContext>>& contexts,
                       const ProcessTable& processes, bool sees_all);

/// Who uses the GPU now. Asks again for a moment while processes are listed that do not exist:
/// those that are just ending.
GpuOccupants occupants(const GpuMonitor& monitor);

/// Processes with a compute context that are neither in `own_roots` nor below one of them. Programs
/// that only draw are left out. A process that was killed is there until it has left the GPU.
std::vector<GpuProcess> foreign_compute(const GpuOccupants& occupants,
                                        std::span<const pid_t> own_roots);

/// Processes that only draw, a desktop's say: to be named, not refused.
std::vector<GpuProcess> graphics_only(const GpuOccupants& occupants);

}  // namespace rekernel
