#include "harness/cli/problem.h"

#include "harness/gpu/identity.h"
#include "harness/problems/catalog.h"

namespace rekernel {

Result<std::vector<const Problem*>> chosen_problems(const ParsedArguments& parsed,
                                                    const std::string& command) {
  std::vector<const Problem*> problems;
  if (parsed.flag("all")) {
    if (const auto errors = catalog_errors(); !errors.empty()) return errors.front();
    for (const Problem& problem : catalog()) problems.push_back(&problem);
    return problems;
  }
  if (!parsed.has("problem")) return Error{command + ": expected problems, or --all"};
  for (const std::string& id : parsed.get<std::vector<std::string>>("problem")) {
    const Problem* problem = find_problem(id);
    if (!problem) return unknown_problem(id);
    problems.push_back(problem);
  }
  return problems;
}

Result<GpuLock> locked_gpu(int ordinal, Progress& progress) {
  const Result<GpuIdentity> gpu = identify_gpu(ordinal);
  if (!gpu) return gpu.error();
  return GpuLock::acquire(gpu->uuid, std::nullopt,
                          [&](const std::string& holder) { progress.show(holder); });
}

}  // namespace rekernel
