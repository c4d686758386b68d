#include "harness/cli/problem.h"

#include <iostream>
#include <span>

#include "harness/cli/command.h"
#include "harness/gpu/identity.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace {

constexpr const char* usage =
    "Usage: rekernel problem check FILE…      read problem files and try what they say\n"
    "       rekernel problem verify [ID…]     definitions beside PyTorch in float64, on a GPU\n"
    "       rekernel problem mutants [ID…]    wrong definitions' kernels, judged on a GPU\n"
    "\n"
    "ops/problems/README.md says how a problem's file is written.\n"
    "`rekernel problem COMMAND --help` tells the options of each.\n";

}  // namespace

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

int problem_command(const std::vector<std::string>& arguments) {
  const std::string name = arguments.empty() ? "" : arguments[0];
  if (name == "--help" || name == "-h") {
    std::cout << usage;
    return exit_good;
  }
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                      arguments.end());
  if (name == "check") return problem_check_command(rest);
  if (name == "verify") return problem_verify_command(rest);
  if (name == "mutants") return problem_mutants_command(rest);
  if (name.empty()) {
    std::cerr << usage;
    return exit_bad_input;
  }
  return bad_input({"problem: unknown command '" + name + "': expected check, verify or mutants"});
}

}  // namespace rekernel
