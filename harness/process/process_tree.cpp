#include "harness/process/process_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "harness/base/file_descriptor.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

/// The children of every thread of a process. Empty where the kernel does not list them.
std::vector<pid_t> children_of(pid_t process) {
  namespace fs = std::filesystem;
  std::vector<pid_t> children;
  std::error_code gone;
  fs::directory_iterator threads("/proc/" + std::to_string(process) + "/task", gone);
  for (; !gone && threads != fs::directory_iterator(); threads.increment(gone)) {
    std::ifstream list(threads->path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

/// Everything below a process, parents first. A sandbox's processes are in a session of their own,
/// where no signal to a process group reaches them.
std::vector<FileDescriptor> descendants_of(pid_t root) {
  std::vector<pid_t> all = children_of(root);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const pid_t child : children_of(all[i])) all.push_back(child);
  }
  std::vector<FileDescriptor> handles;
  for (const pid_t process : all) {
    FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (handle.is_open()) handles.push_back(std::move(handle));
  }
  return handles;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

/// A handle becomes readable when its process has ended.
void wait_for_end(const FileDescriptor& process, Clock::time_point deadline) {
  pollfd watched{process.get(), POLLIN, 0};
  while (::poll(&watched, 1, milliseconds_until(deadline)) < 0 && errno == EINTR) {
  }
}

}  // namespace

int kill_process_tree(pid_t child, std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  const std::vector<FileDescriptor> below = descendants_of(child);
  ::kill(-child, SIGKILL);
  for (const FileDescriptor& process : below) {
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
  for (const FileDescriptor& process : below) wait_for_end(process, deadline);
  int status = SIGKILL;  // as WIFSIGNALED reads it, should the child outlive our patience
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (Clock::now() >= deadline) return SIGKILL;
    ::usleep(1000);
  }
}

}  // namespace rekernel
