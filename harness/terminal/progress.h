#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace rekernel {

/// A line on standard error that is rewritten in place, on terminals only. Cleared when it goes.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);
  /// "[3/12] TEXT, about 40 s left", where `done` of `total` parts of a work are done.
  void step(std::size_t done, std::size_t total, std::string_view text);

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace rekernel
