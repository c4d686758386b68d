#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluate.h"
#include "harness/gpu/exclusive.h"
#include "ops/result.h"

namespace rekernel {

/// What CUDA_VISIBLE_DEVICES must be for a process to see only the GPU that has this number here,
/// where the variable is `visible` (null: not set).
std::string visible_alone(const char* visible, int device);

/// Hides all GPUs but one from this process, before its first call to CUDA, and from those that it
/// starts. Each process spends time on every GPU that it sees, and waits meanwhile for processes
/// that begin on another: an evaluation starts four.
void see_one_gpu_alone(int device);

/// Waits until no other evaluation holds the GPU of this UUID; past the deadline, if there is one,
/// the error names who does. `on_wait`: told once, who does.
Result<Ok> wait_for_gpu(const std::string& uuid, std::optional<GpuLock::Clock::time_point> deadline,
                        const GpuLock::OnWait& on_wait);

/// That a candidate could not be evaluated, and why.
EvaluationReport not_evaluated(const Candidate& candidate, const std::string& why);

/// Evaluates a candidate in a process that sees the GPU of the options alone, as its number 0.
/// Waits for its end.
EvaluationReport evaluate_in_own_process(const Candidate& candidate,
                                         const EvaluateOptions& options);

/// That process: its GPU's number is the only argument. Gives its exit status.
int run_gpu_worker(
    const std::string& device,
    const std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)>& judge);

}  // namespace rekernel
