#include "harness/evaluation/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "harness/base/quantile.h"

namespace rekernel {

namespace {

/// Half of 5% belongs to each of two medians, and half of that to each side.
constexpr double tail_of_one_side = 0.0125;

}  // namespace

Timing summarise(std::vector<std::int64_t> samples_ns) {
  Timing timing;
  timing.median_ns = std::llround(quantile(samples_ns, 0.5));
  timing.low_ns = std::llround(quantile(samples_ns, 0.25));
  timing.high_ns = std::llround(quantile(samples_ns, 0.75));
  timing.samples_ns = std::move(samples_ns);
  return timing;
}

std::size_t median_rank(std::size_t samples, double tail) {
  // Through logarithms: 2^-samples is no double for the largest numbers of samples.
  const auto n = static_cast<double>(samples);
  double below = 0.0;
  std::size_t rank = 0;
  for (; rank < samples; ++rank) {
    const auto k = static_cast<double>(rank);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::log(2.0));
    if (!(below <= tail)) break;
  }
  return std::max<std::size_t>(rank, 1);
}

MedianInterval median_interval(std::span<const std::int64_t> samples, double tail) {
  assert(!samples.empty());
  std::vector<std::int64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank = median_rank(sorted.size(), tail);
  return {sorted[rank - 1], sorted[sorted.size() - rank]};
}

Percent percent_of_reference(std::span<const std::int64_t> reference_ns,
                             std::span<const std::int64_t> kernel_ns) {
  const MedianInterval reference = median_interval(reference_ns, tail_of_one_side);
  const MedianInterval kernel = median_interval(kernel_ns, tail_of_one_side);
  Percent percent;
  percent.value = 100.0 * quantile(reference_ns, 0.5) / quantile(kernel_ns, 0.5);
  percent.low = 100.0 * static_cast<double>(reference.low) / static_cast<double>(kernel.high);
  percent.high = 100.0 * static_cast<double>(reference.high) / static_cast<double>(kernel.low);
  return percent;
}

std::int64_t noise_ppm(std::span<const std::int64_t> first_ns,
                       std::span<const std::int64_t> second_ns) {
  constexpr double ppm_per_percent = 1e4;
  const Percent noise = percent_of_reference(first_ns, second_ns);
  const double half_width = std::max(noise.high - 100.0, 100.0 - noise.low);
  return static_cast<std::int64_t>(half_width * ppm_per_percent);
}

}  // namespace rekernel
