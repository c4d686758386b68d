#include "replay/precompile.h"

#include "harness/base/parallel.h"

namespace rekernel {
namespace {

std::optional<CompileVerdict> verdict_on(const Candidate& candidate, const Compiler& compiler,
                                         const std::string& target,
                                         std::chrono::milliseconds deadline) {
  const Result<CompileOutcome> outcome =
      compile_candidate(compiler, candidate, target, candidate.name, deadline);
  if (!outcome || outcome->program) return std::nullopt;
  return CompileVerdict{outcome->status, outcome->message};
}

}  // namespace

std::vector<std::optional<CompileVerdict>> precompile(std::span<const Candidate* const> candidates,
                                                      const std::string& target, unsigned workers,
                                                      std::chrono::milliseconds deadline) {
  std::vector<std::optional<CompileVerdict>> verdicts(candidates.size());
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return verdicts;
  for_each_in_parallel(candidates.size(), workers, [&](std::size_t i) {
    verdicts[i] = verdict_on(*candidates[i], *compiler, target, deadline);
  });
  return verdicts;
}

}  // namespace rekernel
