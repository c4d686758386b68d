#pragma once

#include "harness/evaluation/reference_source.h"

namespace rekernel {

/// The process that runs a subject: a candidate, or the library references. It owns a CUDA context,
/// the code that it was sent, and two events for each run. Its memory is the referee's, mapped
/// here: inputs for reading, the output and workspaces for writing. It knows no seed and no truth,
/// and none of its words decides anything: what it says of a time has to agree with the referee's
/// stamps.
///
/// The conversation is on descriptor first_served_descriptor, the page of words on the next.
/// Requests and their answers, in fields ("cuda", code, text answers any of them when CUDA fails):
///   "open", reference ids → "ready", when the device is open; or "failed", text
///   "map", (name, bytes, allocation, offset, "read" or "write")… and a descriptor each → "ok"
///   "load", plan, source, machine code           → "ok", subject; or "refused", text
///   "reference", problem, id                     → "ok", subject, details; or "refused", text
///   "reload", subject                            → "ok"; or "refused", text
///   "matrix rate", reference id, extent          → "ok", operations per second
///   "forget"                                     → "ok"; all subjects and mappings are gone
///   "cache entries"                              → "ok", what was found out since the last time
///   "run", subject, ticket                       → "armed", then "ran", nanoseconds
/// What is loaded, made or reloaded runs once at once, so that nothing is left to be set up.
/// A run is issued whole before "armed": the stream waits until the word `go` is the ticket, and
/// sets the word `done` to it after the plan.
///
/// Serves until the referee hangs up; returns the exit status.
int run_runner_worker(const ReferenceSource& references);

}  // namespace rekernel
