#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace rekernel {

/// "45 s", "12 min", "3 h 20 min".
std::string duration_text(std::chrono::seconds time);

/// How far equal pieces of work are, and how long the rest will take at the pace so far.
class TimeLeft {
 public:
  explicit TimeLeft(std::size_t total) : total_(total) {}
  /// "3 of 64, 12 min left"; without a time before the first.
  std::string text(std::size_t done) const;

 private:
  std::size_t total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace rekernel
