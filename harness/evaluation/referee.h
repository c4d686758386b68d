#pragma once

#include "harness/base/fields.h"
#include "harness/candidate/candidate.h"
#include "harness/evaluation/reference_source.h"
#include "harness/evaluation/request.h"

namespace rekernel {

/// The process that judges: it owns inputs, outputs, truth, seeds and stamps, and no code of a
/// candidate runs in its context (but in mode `once`, which judges nothing, and after which it
/// ends).
///
/// The conversation is on descriptor first_served_descriptor:
///   "prepare"  with a socket and a page of words for the process of the libraries, which is kept:
///       both open the device, and there is no answer
///   "evaluate", request, "libraries" or "", "truth" or "", "candidate" or "", "stays" or ""  with
///       a socket and a page of words for the candidate's process and for its second one where it
///       needs one, unless those that stayed serve again, and for that of the libraries where it is
///       lent, which is kept; a socket of the process that runs programs which give a truth, where
///       it is lent, which is kept as well; then two descriptors for each external reference.
///       The candidate's processes were told to open the device; they stay for the next evaluation,
///       of the same candidate at other sizes, where that is asked for and it passed.
///     → "code", once it needs the candidate's machine code, answered by that in one field
///     → "started", new cache entries: the set-up is over
///     → "report", JSON, and whether it goes on: then it waits for the next evaluation
/// Serves until the other side hangs up; returns the exit status.
int run_referee_worker(const ReferenceSource& references);

/// Processes that come with a request, and which of them the referee keeps.
struct Lent {
  bool libraries = false;        ///< kept
  bool truth_process = false;    ///< kept
  bool candidate = false;        ///< else those that stayed
  bool candidate_stays = false;  ///< for the next evaluation, if this one passes
};

/// The request, as the referee reads it.
Fields referee_request(const Candidate& candidate, const EvaluateOptions& options,
                       const Lent& lent);

constexpr const char* referee_goes_on = "next";

}  // namespace rekernel
