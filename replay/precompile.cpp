#include "replay/precompile.h"

#include "ops/catalog.h"

namespace rekernel {

std::optional<CompileVerdict> precompile(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target,
                                         std::chrono::milliseconds deadline) {
  const Result<CompileOutcome> outcome =
      compile_isolated(compiler, candidate.program,
                       problem_header(*find_problem(candidate.problem)), target, deadline);
  if (!outcome) return std::nullopt;
  if (!outcome->program) return CompileVerdict{outcome->status, outcome->message};
  const Result<Ok> launches = check_launches(candidate.program, *outcome->program, candidate.name);
  if (launches) return std::nullopt;
  return CompileVerdict{Status::invalid_plan, launches.error().message};
}

}  // namespace rekernel
