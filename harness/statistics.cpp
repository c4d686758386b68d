#include "harness/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>

namespace rekernel {

namespace {

double sorted_quantile(std::span<const std::int64_t> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1.0 - weight) +
         static_cast<double>(sorted[above]) * weight;
}

/// The median of a sample drawn with replacement.
double resampled_median(std::span<const std::int64_t> samples, std::mt19937_64& generator,
                        std::vector<std::int64_t>& scratch) {
  scratch.resize(samples.size());
  for (std::int64_t& value : scratch) value = samples[generator() % samples.size()];
  std::sort(scratch.begin(), scratch.end());
  return sorted_quantile(scratch, 0.5);
}

}  // namespace

double quantile(std::span<const std::int64_t> samples, double fraction) {
  assert(!samples.empty());
  std::vector<std::int64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted_quantile(sorted, fraction);
}

Timing summarise(std::vector<std::int64_t> samples_ns) {
  Timing timing;
  timing.median_ns = std::llround(quantile(samples_ns, 0.5));
  timing.low_ns = std::llround(quantile(samples_ns, 0.25));
  timing.high_ns = std::llround(quantile(samples_ns, 0.75));
  timing.samples_ns = std::move(samples_ns);
  return timing;
}

Percent percent_of_reference(std::span<const std::int64_t> reference_ns,
                             std::span<const std::int64_t> kernel_ns) {
  constexpr int resamples = 2000;
  std::mt19937_64 generator(1);
  std::vector<std::int64_t> scratch;
  std::vector<double> ratios;
  ratios.reserve(resamples);
  for (int i = 0; i < resamples; ++i) {
    const double reference = resampled_median(reference_ns, generator, scratch);
    ratios.push_back(100.0 * reference / resampled_median(kernel_ns, generator, scratch));
  }
  std::sort(ratios.begin(), ratios.end());
  Percent percent;
  percent.value = 100.0 * quantile(reference_ns, 0.5) / quantile(kernel_ns, 0.5);
  percent.low = ratios[resamples * 25 / 1000];
  percent.high = ratios[resamples * 975 / 1000];
  return percent;
}

}  // namespace rekernel
