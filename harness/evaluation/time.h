#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rekernel {

/// One thing to time: `sample` prepares the device (inputs, poison, cold cache), runs the work
/// between two events and returns nanoseconds.
struct TimedSubject {
  std::string name;
  std::function<std::int64_t()> sample;
  int samples = 0;
};

/// The samples of every subject, by name, measured by Google Benchmark with manual time; its
/// random interleaving spreads the drift of clocks and temperature over all of them. The first
/// exception that a sample throws ends the measurement and is thrown again.
std::map<std::string, std::vector<std::int64_t>> measure_interleaved(
    const std::vector<TimedSubject>& subjects);

}  // namespace rekernel
