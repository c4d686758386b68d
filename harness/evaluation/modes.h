#pragma once

#include <functional>

#include "harness/evaluation/rig.h"

namespace rekernel {

/// What the modes of an evaluation do with a rig, each from the candidate's machine code to a
/// report. `compiled` gives the machine code, when it is needed; `started` is called when the
/// set-up is over and the candidate is about to run for the first time, `finished` with the report
/// while all of the rig still stands: it need not come back, since taking everything apart in order
/// takes longer than ending the process.
struct Occasion {
  const Candidate& candidate;
  const Problem& problem;
  const EvaluateOptions& options;
  const ReferenceSource& references;
  std::function<Result<CompileOutcome>()> compiled;
  std::function<void()> started;
  std::function<void(const EvaluationReport&)> finished;
};

/// Modes verdict, errors, noise and diagnosis, with other processes. Never throws for a candidate's
/// failures.
EvaluationReport evaluate_with(const Occasion& occasion, Connections connections);

/// Mode once: one checked run, all in this process and on memory of exactly the size of each
/// buffer.
EvaluationReport run_once(const Occasion& occasion);

}  // namespace rekernel
