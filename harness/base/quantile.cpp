#include "harness/base/quantile.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace rekernel {

double quantile(std::span<const std::int64_t> samples, double fraction) {
  assert(!samples.empty());
  std::vector<std::int64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1.0 - weight) +
         static_cast<double>(sorted[above]) * weight;
}

}  // namespace rekernel
