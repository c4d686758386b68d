#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/capture/recording.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// The bytes of a module of a recording, by its file's name.
using ModuleBytes = std::function<Result<std::string>(const std::string& file)>;

/// Makes a candidate of what a program did in its first recorded call; the second must have done
/// the same, but for addresses. Arguments that point into the problem's tensors become these, what
/// points elsewhere in device memory becomes workspaces of undefined content, one an allocation;
/// all other bytes of parameters stay as they were. Bytes of structures that differ between the
/// calls are taken for padding and are those of one; the candidate's origin says which. What
/// cannot be taken out of the program (several threads, work of the host between launches, pinned
/// or managed memory and so on) is an error that says so. `program` is the name to show.
Result<Candidate> make_plan(const Recording& recording, const ModuleBytes& modules,
                            const Problem& problem, Arch arch, const std::string& name,
                            const std::string& program);

}  // namespace rekernel
