#pragma once

#include <cstdint>
#include <optional>

#include "harness/evaluation/rejection.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"

namespace rekernel {

/// What the device's memory moves at most, bytes per second: two transfers a clock over the whole
/// bus. 0 where the driver does not tell.
std::int64_t memory_bytes_per_s(const DeviceProperties& device);

/// What the device's matrix units do at most, FP16 operations per second, at the highest clock. 0
/// for a chip that candidate/arch.h has no rate of, or where the driver does not tell the clock.
std::int64_t matrix_operations_per_s(const DeviceProperties& device);

/// The least time that the device needs for the problem, ns, rounded down: the larger of
/// Problem::least_bytes, less those that the L2 cache holds (the last of the output may lie there
/// when the last kernel ends), over memory_bytes_per_s(), and Problem::fewest_matrix_operations
/// over matrix_operations_per_s(). A part of which something is not known is left out; 0: no bound.
std::int64_t speed_of_light_ns(const Problem& problem, const DeviceProperties& device);

/// `implausible_time` for a median below the speed of light, and for no other.
std::optional<Rejection> check_plausibility(std::int64_t median_ns, const Problem& problem,
                                            const DeviceProperties& device);

}  // namespace rekernel
