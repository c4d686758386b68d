#include "replay/evaluator/precompile.h"

namespace rekernel {

std::optional<CompileVerdict> precompile(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target,
                                         std::chrono::milliseconds deadline) {
  const Result<CompileOutcome> outcome =
      compile_candidate(compiler, candidate, target, candidate.name, deadline);
  if (!outcome || outcome->program) return std::nullopt;
  return CompileVerdict{outcome->status, outcome->message};
}

}  // namespace rekernel
