#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"

namespace rekernel {

/// What the compiler alone makes of a candidate.
struct CompileVerdict {
  Status status = Status::compile_failed;
  std::string message;
};

/// Compiles a candidate for `target` ("sm_90a") in a child of its own, and so fills the compile
/// cache. Needs no GPU. Gives the verdict on one that the compiler rejects, or on which it hangs or
/// crashes; nothing for the others.
std::optional<CompileVerdict> precompile(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target,
                                         std::chrono::milliseconds deadline = compile_deadline);

}  // namespace rekernel
