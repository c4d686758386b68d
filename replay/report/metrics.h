#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rekernel {

/// pass@k of `samples` tries of which `correct` were correct: the chance that k tries, drawn
/// without replacement, hold a correct one. Unbiased estimator 1 − C(n−c, k) ÷ C(n, k) of Chen et
/// al., "Evaluating Large Language Models Trained on Code", 2021. Needs 1 ≤ k ≤ n, 0 ≤ c ≤ n.
double pass_at_k(std::int64_t samples, std::int64_t correct, std::int64_t k);

/// speedup@k: the expected best speed-up of k tries drawn without replacement from these, with 0
/// for a try that failed. The order-statistic estimator Σ C(j−1, k−1) ÷ C(n, k) · s_j over
/// ascending s, as in Nichols et al., "Can Large Language Models Write Parallel Code?" (ParEval),
/// HPDC 2024. Needs 1 ≤ k ≤ n.
double speedup_at_k(std::vector<double> speedups, std::int64_t k);

/// One task's outcome for fast_p.
struct TaskResult {
  bool correct = false;
  double speedup = 0;  ///< reference time ÷ kernel time
};

/// fast_p of KernelBench (Ouyang et al., 2025): the share of tasks that are correct and faster than
/// p times the reference. 0 for no tasks.
double fast_p(std::span<const TaskResult> tasks, double p);

}  // namespace rekernel
