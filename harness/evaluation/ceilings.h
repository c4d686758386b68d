#pragma once

#include <cstdint>
#include <optional>

#include "harness/device/device_tools.h"
#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/rejection.h"
#include "ops/problem.h"

namespace rekernel {

/// Bytes per second of a large device-to-device copy (read plus written): the faster of a kernel
/// and the driver's own copy, the fastest of several runs.
std::int64_t measure_copy_rate(const DeviceTools& tools, const DeviceProperties& device,
                               const Stream& stream);

/// The least time that the problem can take under these ceilings, ns: max(bytes ÷ copy rate,
/// operations × `products` ÷ matrix rate). A rate of 0 leaves its part out.
std::int64_t floor_ns(const Problem& problem, const Ceilings& ceilings, int products);

/// Below this time a result is not believed: the floor with one matrix product, without the bytes
/// that may still lie in the L2 cache when the last kernel ends, and with a margin for what the
/// measured ceilings leave on the table.
std::int64_t implausible_below_ns(const Problem& problem, const Ceilings& ceilings,
                                  const DeviceProperties& device);

/// `implausible_time` for a median that is not believed.
std::optional<Rejection> check_plausibility(std::int64_t median_ns, const Problem& problem,
                                            const Ceilings& ceilings,
                                            const DeviceProperties& device);

}  // namespace rekernel
