#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/evaluation.h"

namespace rekernel {

/// The value below which a share of `fraction` of the samples lies, by linear interpolation between
/// order statistics (type 7 of Hyndman and Fan, 1996). `samples` must not be empty.
double quantile(std::span<const std::int64_t> samples, double fraction);

/// Median and quartiles of the samples.
Timing summarise(std::vector<std::int64_t> samples_ns);

/// median(reference) ÷ median(kernel) in percent with the 95% percentile interval of a bootstrap
/// (B. Efron, 1979) over both sample sets. Deterministic: the resampling uses a fixed seed. Neither
/// may be empty.
Percent percent_of_reference(std::span<const std::int64_t> reference_ns,
                             std::span<const std::int64_t> kernel_ns);

}  // namespace rekernel
