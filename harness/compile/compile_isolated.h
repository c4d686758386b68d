#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/candidate/status.h"
#include "harness/compile/compile.h"

namespace rekernel {

/// What the compiler made of a candidate: a program, or a verdict.
struct CompileOutcome {
  std::optional<CompiledProgram> program;
  Status status = Status::compile_failed;  ///< without a program: why
  std::string message;
};

/// How long a candidate may compile, a third of it computing: less than the start-up deadline of
/// its evaluation, so that the verdict names the compiler. The slowest committed candidate computes
/// for a second and a half.
inline constexpr std::chrono::seconds compile_deadline{45};

/// Compiles a stranger's program in a child (this program's hidden command `compile-worker`), with
/// limits and in the sandbox. All modules that the cache does not have share that child, and so its
/// deadline, its processor time and its memory. What the
/// child made is remembered by this process: the child can write no file. An error is a failure of
/// the set-up and says nothing of the program.
Result<CompileOutcome> compile_isolated(const Compiler& compiler, const Program& program,
                                        const std::string& problem_header,
                                        const std::string& target,
                                        std::chrono::milliseconds deadline = compile_deadline);

/// The same of a candidate, whose launches must fit what was compiled: `invalid_plan` if not, with
/// `where` before the message.
Result<CompileOutcome> compile_candidate(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target, const std::string& where,
                                         std::chrono::milliseconds deadline = compile_deadline);

/// The child's side. Returns the exit status.
int run_compile_worker();

/// An outcome as fields: from the child that compiles, and to the child that evaluates. A child is
/// believed a program, a rejection and a failure of its own, nothing else; its texts are cut, and
/// nothing in them speaks to a terminal.
std::string to_fields(const Result<CompileOutcome>& outcome);
Result<CompileOutcome> compile_outcome_from(std::string_view fields);

}  // namespace rekernel
