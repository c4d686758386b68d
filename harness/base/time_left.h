#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace rekernel {

/// "45 s", "12 min", "3 h 20 min".
std::string duration_text(std::chrono::seconds time);

/// "about 40 s left", "about 3 min left", from the time that `done` of `total` equal parts took.
/// Empty before anything is done, after the end, and within the first two seconds, when the first
/// parts say little of the others.
std::string time_left(std::chrono::nanoseconds elapsed, std::size_t done, std::size_t total);

/// How far equal pieces of work are, and how long the rest will take at the pace so far.
class TimeLeft {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TimeLeft(std::size_t total, Clock::time_point start = Clock::now())
      : total_(total), start_(start) {}
  /// "3 of 64, about 12 min left"; without a time where time_left() has none.
  std::string text(std::size_t done) const;

 private:
  std::size_t total_;
  Clock::time_point start_;
};

}  // namespace rekernel
