#pragma once

#include <chrono>
#include <functional>

namespace rekernel::service {

/// The one thread on which everything of a service happens but judging and the store.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  /// From any thread; in order.
  virtual void post(std::function<void()> work) = 0;
  /// From the loop's own thread, by a clock that does not jump.
  virtual void after(std::chrono::milliseconds time, std::function<void()> work) = 0;
};

}  // namespace rekernel::service
