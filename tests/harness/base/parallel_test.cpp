#include "harness/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace rekernel {
namespace {

TEST(ForEachInParallel, DoesEverythingOnce) {
  for (const unsigned workers : {0u, 1u, 3u, 100u}) {
    std::vector<std::atomic<int>> done(50);
    for_each_in_parallel(done.size(), workers, [&](std::size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << workers;
  }
  for_each_in_parallel(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ForEachInParallel, HasAsManyAtWorkAsAsked) {
  std::atomic<int> at_work = 0;
  std::atomic<int> most = 0;
  // The first three wait for each other: fewer threads would never get past.
  for_each_in_parallel(6, 3, [&](std::size_t i) {
    const int now = ++at_work;
    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    while (i < 3 && most < 3) std::this_thread::yield();
    --at_work;
  });
  EXPECT_EQ(most, 3);
}

}  // namespace
}  // namespace rekernel
