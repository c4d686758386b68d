#include "harness/profile/ncu_pages.h"

#include <cmath>

#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_ncu(std::string_view bytes) {
  if (const auto launches = launches_in(bytes)) {
    for (const LaunchMetrics& launch : *launches) {
      for (const auto& [name, value] : launch.values) {
        require(!name.empty() && std::isfinite(value), "a metric has a name and a number");
      }
    }
  } else {
    require_error(launches.error(), "page raw");
  }
  const auto instructions = instructions_in(bytes);
  if (!instructions) return require_error(instructions.error(), "page source");
  for (const SampledInstruction& one : *instructions) {
    require(one.samples >= 0 && one.line == 0, "counts are counts, and lines come later");
  }
}

}  // namespace rekernel::fuzz
