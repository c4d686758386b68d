#include "harness/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace rekernel {

void for_each_in_parallel(std::size_t count, unsigned workers,
                          const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  const std::size_t wanted = std::min<std::size_t>(std::max(1u, workers), count);
  for (std::size_t thread = 0; thread < wanted; ++thread) {
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < count;) work(i);
    });
  }
}

}  // namespace rekernel
