#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// What the compiler alone makes of a candidate.
struct CompileVerdict {
  Status status = Status::compile_failed;
  std::string message;
};

/// Compiles all candidates for `target` ("sm_90a"), at most `workers` at a time, each in a child of
/// its own, and so fills the compile cache. Needs no GPU. Gives the verdict on those that the
/// compiler rejects, or on which it hangs or crashes; nothing for the others, nor where there is no
/// compiler.
std::vector<std::optional<CompileVerdict>> precompile(
    std::span<const Candidate* const> candidates, const std::string& target, unsigned workers,
    std::chrono::milliseconds deadline = compile_deadline);

}  // namespace rekernel
