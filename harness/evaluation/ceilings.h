#pragma once

#include <cstdint>

#include "harness/device/device_tools.h"
#include "harness/evaluation/evaluation.h"
#include "ops/problem.h"

namespace rekernel {

/// Bytes per second of a large device-to-device copy (read plus written): the faster of a kernel
/// and the driver's own copy, the fastest of several runs.
std::int64_t measure_copy_rate(const DeviceTools& tools, const DeviceProperties& device,
                               const Stream& stream);

/// The FP16 product of two square matrices of so many rows, whose rate in the best library is the
/// matrix rate.
Problem matrix_rate_product(std::int64_t extent);

/// The time of the problem at these rates, ns: max(bytes ÷ copy rate, operations of the definition
/// × Problem::matrix_products ÷ matrix rate). A rate of 0 leaves its part out. What copies and
/// library products reach is no law of nature: a better kernel takes less.
std::int64_t ceiling_ns(const Problem& problem, const Ceilings& ceilings);

}  // namespace rekernel
