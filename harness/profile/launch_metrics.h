#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rekernel {

/// What a profiler counted of one kernel launch: by metric, in base units (ns, bytes, percent).
struct LaunchMetrics {
  std::string kernel;
  std::string grid;   ///< "(132, 1, 1)", as the profiler writes it
  std::string block;  ///< the same
  std::map<std::string, double, std::less<>> values;

  std::optional<double> value(std::string_view metric) const {
    const auto found = values.find(metric);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
};

/// One machine instruction, and how often warps were seen at it.
struct SampledInstruction {
  std::uint64_t offset = 0;  ///< bytes from the first instruction
  std::string text;          ///< "LDG.E.128 R4, [R2.64]"
  std::int64_t samples = 0;
  std::string stall;  ///< the reason that most samples gave, as its column is called; or empty
  int line = 0;       ///< of the source; 0: not known
};

}  // namespace rekernel
