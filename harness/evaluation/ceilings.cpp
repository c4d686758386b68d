#include "harness/evaluation/ceilings.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

namespace {

constexpr int runs = 8;
constexpr std::int64_t copy_bytes = std::int64_t{1} << 30;

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
  return rate_per_s > 0 ? amount / static_cast<double>(rate_per_s) * 1e9 : 0.0;
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

Problem matrix_rate_product(std::int64_t extent) {
  const Problem* product = find_problem("matmul_fp16");
  if (!product) throw std::logic_error("matrix_rate_product: there is no problem matmul_fp16");
  Result<Problem> sized = problem_at(*product, {{"m", extent}, {"n", extent}, {"k", extent}});
  if (!sized) throw std::logic_error("matrix_rate_product: " + sized.error().message);
  return std::move(*sized);
}

std::int64_t ceiling_ns(const Problem& problem, const Ceilings& ceilings) {
  const double bytes = static_cast<double>(problem.min_bytes);
  const double operations =
      static_cast<double>(problem.operations) * static_cast<double>(problem.matrix_products);
  return std::llround(std::max(nanoseconds(bytes, ceilings.copy_bytes_per_s),
                               nanoseconds(operations, ceilings.fp16_flops_per_s)));
}

}  // namespace rekernel
