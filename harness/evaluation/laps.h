#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rekernel {

/// Where the wall time goes.
class Laps {
 public:
  explicit Laps(std::vector<std::pair<std::string, std::int64_t>>& split_ns)
      : split_ns_(split_ns) {}
  /// All since the last lap was this phase.
  void lap(const std::string& phase) {
    const auto now = std::chrono::steady_clock::now();
    split_ns_.emplace_back(
        phase, std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count());
    last_ = now;
  }

 private:
  std::vector<std::pair<std::string, std::int64_t>>& split_ns_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace rekernel
