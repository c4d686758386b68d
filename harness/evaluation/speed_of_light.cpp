#include "harness/evaluation/speed_of_light.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/candidate/arch.h"

namespace rekernel {

namespace {

/// A device can tell clocks and widths whose product no 64 bits hold: as real numbers.
std::int64_t whole(double value) {
  constexpr double most = 9e18;
  return static_cast<std::int64_t>(std::floor(std::clamp(value, 0.0, most)));
}

double nanoseconds(std::int64_t amount, std::int64_t rate_per_s) {
  if (rate_per_s <= 0) return 0.0;
  return static_cast<double>(amount) / static_cast<double>(rate_per_s) * 1e9;
}

}  // namespace

std::int64_t memory_bytes_per_s(const DeviceProperties& device) {
  return whole(2.0 * 1e3 * static_cast<double>(device.memory_clock_khz) *
               static_cast<double>(device.memory_bus_bits) / 8.0);
}

std::int64_t matrix_operations_per_s(const DeviceProperties& device) {
  const std::int64_t per_clock =
      matrix_operations_per_clock({device.major, device.minor}).value_or(0);
  return whole(static_cast<double>(per_clock) * device.multiprocessors * 1e3 *
               static_cast<double>(device.clock_khz));
}

std::int64_t speed_of_light_ns(const Problem& problem, const DeviceProperties& device) {
  // Without the size of the cache nobody knows how many of the bytes it holds.
  const double of_memory = device.l2_bytes > 0 ? nanoseconds(problem.least_bytes - device.l2_bytes,
                                                             memory_bytes_per_s(device))
                                               : 0.0;
  const double of_matrices =
      nanoseconds(problem.fewest_matrix_operations, matrix_operations_per_s(device));
  return whole(std::max(of_memory, of_matrices));
}

std::optional<Rejection> check_plausibility(std::int64_t median_ns, const Problem& problem,
                                            const DeviceProperties& device) {
  const std::int64_t limit = speed_of_light_ns(problem, device);
  if (limit == 0 || median_ns >= limit) return std::nullopt;
  return Rejection{Status::implausible_time,
                   "median " + std::to_string(median_ns) + " ns, below the speed of light: " +
                       std::to_string(limit) + " ns, the least that this device's memory and " +
                       "matrix units need for the work"};
}

}  // namespace rekernel
