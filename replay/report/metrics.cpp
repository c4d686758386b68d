#include "replay/report/metrics.h"

#include <algorithm>
#include <stdexcept>

namespace rekernel {
namespace {

void check_draws(std::int64_t samples, std::int64_t k) {
  if (k < 1 || k > samples) throw std::invalid_argument("k must lie between 1 and the samples");
}

}  // namespace

double pass_at_k(std::int64_t samples, std::int64_t correct, std::int64_t k) {
  check_draws(samples, k);
  if (correct < 0 || correct > samples) throw std::invalid_argument("more correct than samples");
  // C(n−c, k) ÷ C(n, k) as a product, which neither overflows nor cancels.
  double none_correct = 1.0;
  for (std::int64_t i = samples - correct + 1; i <= samples; ++i) {
    none_correct *= std::max(0.0, 1.0 - static_cast<double>(k) / static_cast<double>(i));
  }
  return 1.0 - none_correct;
}

double speedup_at_k(std::vector<double> speedups, std::int64_t k) {
  const auto samples = static_cast<std::int64_t>(speedups.size());
  check_draws(samples, k);
  std::sort(speedups.begin(), speedups.end(), std::greater<>());
  // The weight of the j-th best, C(n−j, k−1) ÷ C(n, k), from the one before it.
  double weight = static_cast<double>(k) / static_cast<double>(samples);
  double expected = 0.0;
  for (std::int64_t j = 1; j <= samples - k + 1; ++j) {
    expected += weight * speedups[static_cast<std::size_t>(j - 1)];
    if (samples > j) {
      weight *= static_cast<double>(samples - j - k + 1) / static_cast<double>(samples - j);
    }
  }
  return expected;
}

double fast_p(std::span<const TaskResult> tasks, double p) {
  if (tasks.empty()) return 0.0;
  const auto fast = std::count_if(tasks.begin(), tasks.end(), [&](const TaskResult& task) {
    return task.correct && task.speedup > p;
  });
  return static_cast<double>(fast) / static_cast<double>(tasks.size());
}

}  // namespace rekernel
