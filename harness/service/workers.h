#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace rekernel::service {

/// Threads that do one piece of work after the other.
class Workers {
 public:
  explicit Workers(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  /// Waits for what runs, and drops what does not.
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
  }
  void push(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;  ///< end before the rest goes
};

}  // namespace rekernel::service
