#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/gpu/nvml.h"

namespace rekernel {

/// Looks again and again who else has a context on a GPU, as far as that can be listed. For what
/// cannot, the referee measures.
class Lookout {
 public:
  explicit Lookout(const std::string& uuid);

  /// What was seen so far is forgotten.
  void begin();
  /// Why no time counts: who had a context there at some moment since the beginning.
  std::optional<std::string> other_processes();
  /// Who draws there.
  std::vector<std::string> graphics();

 private:
  void look();

  std::optional<GpuMonitor> monitor_;
  std::mutex mutex_;  ///< of what follows
  std::string others_;
  std::set<std::string> graphics_;
  std::jthread watcher_;  ///< ends before the rest goes
};

}  // namespace rekernel
