#pragma once

#include <cstdint>
#include <span>

namespace rekernel {

/// The value below which a share of `fraction` of the samples lies, by linear interpolation between
/// order statistics (type 7 of Hyndman and Fan, 1996). `samples` must not be empty.
double quantile(std::span<const std::int64_t> samples, double fraction);

}  // namespace rekernel
