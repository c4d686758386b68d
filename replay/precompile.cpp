#include "replay/precompile.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "ops/catalog.h"

namespace rekernel {
namespace {

std::optional<CompileVerdict> verdict_on(const Candidate& candidate, const Compiler& compiler,
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

}  // namespace

std::vector<std::optional<CompileVerdict>> precompile(std::span<const Candidate* const> candidates,
                                                      const std::string& target, unsigned workers,
                                                      std::chrono::milliseconds deadline) {
  std::vector<std::optional<CompileVerdict>> verdicts(candidates.size());
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return verdicts;
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned worker = 0; worker < std::max(1u, workers); ++worker) {
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < candidates.size();) {
        verdicts[i] = verdict_on(*candidates[i], *compiler, target, deadline);
      }
    });
  }
  threads.clear();  // waits
  return verdicts;
}

}  // namespace rekernel
