#pragma once

#include <string>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluate.h"
#include "harness/evaluation/reference_source.h"

namespace rekernel {

/// The process that judges: it owns inputs, outputs, truth, seeds and stamps, and no code of a
/// candidate runs in its context (but in mode `once`, which judges nothing).
///
/// Reads the request on standard input, and behind it the candidate's machine code; writes the
/// report to the result pipe. Inherits a socket and a page of words for the candidate's process,
/// the same for the libraries' if there is one, and two descriptors for each external reference.
/// Returns the exit status.
int run_referee_worker(const ReferenceSource& references);

/// The request, as the referee reads it.
std::string referee_request(const Candidate& candidate, const EvaluateOptions& options,
                            bool with_libraries);

}  // namespace rekernel
