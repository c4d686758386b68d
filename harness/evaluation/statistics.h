#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// Median and quartiles of the samples.
Timing summarise(std::vector<std::int64_t> samples_ns);

/// An interval that covers the median of what the samples were drawn from.
struct MedianInterval {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// The rank r for which the r-th smallest and the r-th largest of `samples` values enclose the
/// median but for a chance of `tail` on either side: the largest r with P(B < r) ≤ tail, B binomial
/// with p = 1/2. It is 1 where even the whole range is exceeded more often.
std::size_t median_rank(std::size_t samples, double tail);

/// The order statistics of that rank (W. R. Thompson, 1936; H. A. David and H. N. Nagaraja, Order
/// Statistics, 3rd edition, section 7.1). Nothing is assumed of the distribution, and equal values,
/// which coarse event times give, only add to the coverage. `samples` must not be empty.
MedianInterval median_interval(std::span<const std::int64_t> samples, double tail);

/// median(reference) ÷ median(kernel) in percent, with an interval that covers it in at least 95%
/// of all measurements: from the intervals of both medians at 97.5% each (Bonferroni).
/// Deterministic. Neither may be empty; under 7 samples the interval is the range and covers less.
Percent percent_of_reference(std::span<const std::int64_t> reference_ns,
                             std::span<const std::int64_t> kernel_ns);

/// Half the width of that interval in millionths, for two measurements of the same work: the wider
/// side of 100%.
std::int64_t noise_ppm(std::span<const std::int64_t> first_ns,
                       std::span<const std::int64_t> second_ns);

}  // namespace rekernel
