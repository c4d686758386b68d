#pragma once

#include <functional>

#include "harness/evaluation/rig.h"

namespace rekernel {

/// What the modes of an evaluation do with a rig, each from the candidate's machine code to a
/// report. `compiled` gives the machine code, when it is needed; `started` is called when the
/// set-up is over and the candidate is about to run for the first time, with what the libraries'
/// process found out for the cache; `finished` with the report while all of the rig still stands:
/// nobody needs to wait until it is taken apart.
struct Occasion {
  const Candidate& candidate;
  const Problem& problem;
  const EvaluateOptions& options;
  const ReferenceSource& references;
  std::function<Result<CompileOutcome>()> compiled;
  std::function<void(const std::string& entries)> started;
  std::function<void(const EvaluationReport&)> finished;
};

/// Modes verdict, errors, sizes, noise and diagnosis, with other processes; the libraries' is left
/// as it was found, and so are the candidate's where they stay and it passed. Never throws for a
/// candidate's failures; a report that was not given to `finished` is one of a failure of the
/// set-up.
EvaluationReport evaluate_with(const Occasion& occasion, const Device& device,
                               Connections& connections);

/// Mode once: one checked run, all in this process and on memory of exactly the size of each
/// buffer.
EvaluationReport run_once(const Occasion& occasion);

}  // namespace rekernel
