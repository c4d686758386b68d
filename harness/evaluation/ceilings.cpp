#include "harness/evaluation/ceilings.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace rekernel {

namespace {

constexpr int runs = 8;
constexpr std::int64_t copy_bytes = std::int64_t{1} << 30;
/// A kernel cannot be this much faster than the best copy and the best library product allow.
constexpr double plausible_share_of_floor = 0.85;

template <class Work>
std::int64_t fastest_ns(const Stream& stream, Work work) {
  const Event start;
  const Event stop;
  std::int64_t fastest = 0;
  for (int i = 0; i < runs; ++i) {
    start.record(stream);
    work();
    stop.record(stream);
    const std::int64_t elapsed = elapsed_ns(start, stop);
    if (i == 0 || elapsed < fastest) fastest = elapsed;
  }
  return fastest;
}

double nanoseconds(double amount, std::int64_t rate_per_s) {
  return rate_per_s > 0 ? std::max(amount, 0.0) / static_cast<double>(rate_per_s) * 1e9 : 0.0;
}

}  // namespace

std::int64_t measure_copy_rate(const DeviceTools& tools, const DeviceProperties& device,
                               const Stream& stream) {
  const std::int64_t bytes = std::min(copy_bytes, device.memory_bytes / 16 / 16 * 16);
  const DeviceBuffer from(bytes);
  const DeviceBuffer to(bytes);
  tools.overwrite({from.get(), bytes}, stream);
  const std::int64_t elapsed = fastest_ns(stream, [&] {
    tools.copy({to.get(), bytes}, {from.get(), bytes}, stream);
  });
  return std::llround(2.0 * static_cast<double>(bytes) / static_cast<double>(elapsed) * 1e9);
}

std::int64_t floor_ns(const Problem& problem, const Ceilings& ceilings, int products) {
  const double bytes = static_cast<double>(problem.min_bytes);
  const double operations = static_cast<double>(problem.operations) * products;
  return std::llround(std::max(nanoseconds(bytes, ceilings.copy_bytes_per_s),
                               nanoseconds(operations, ceilings.fp16_flops_per_s)));
}

std::int64_t implausible_below_ns(const Problem& problem, const Ceilings& ceilings,
                                  const DeviceProperties& device) {
  const double bytes = static_cast<double>(problem.min_bytes - device.l2_bytes);
  const double operations =
      static_cast<double>(problem.operations) * std::min(problem.matrix_products, 1);
  return std::llround(plausible_share_of_floor *
                      std::max(nanoseconds(bytes, ceilings.copy_bytes_per_s),
                               nanoseconds(operations, ceilings.fp16_flops_per_s)));
}

std::optional<Rejection> check_plausibility(std::int64_t median_ns, const Problem& problem,
                                            const Ceilings& ceilings,
                                            const DeviceProperties& device) {
  const std::int64_t limit = implausible_below_ns(problem, ceilings, device);
  if (median_ns >= limit) return std::nullopt;
  return Rejection{Status::implausible_time, "median " + std::to_string(median_ns) +
                                                 " ns: this device cannot do the work in under " +
                                                 std::to_string(limit)};
}

}  // namespace rekernel
