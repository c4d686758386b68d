#pragma once

#include <functional>
#include <thread>

#include "harness/base/file_descriptor.h"

namespace rekernel {

/// Calls a function on SIGINT or SIGTERM, once, and then ends the process as the signal does. A
/// second signal ends it at once. The function runs in a thread of its own. One at a time.
class OnInterruption {
 public:
  explicit OnInterruption(std::function<void()> act);
  OnInterruption(const OnInterruption&) = delete;
  OnInterruption& operator=(const OnInterruption&) = delete;
  ~OnInterruption();

 private:
  void watch();

  std::function<void()> act_;
  FileDescriptor read_end_;
  std::jthread watcher_;
};

}  // namespace rekernel
