#include "harness/cli/compile_all.h"

#include <algorithm>
#include <set>
#include <thread>

#include "harness/base/parallel.h"
#include "harness/compile/compile_isolated.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

CompileCheck compile_one(const Compiler& compiler, const Candidate& candidate,
                         const std::string& target) {
  CompileCheck check{candidate.problem + "/" + candidate.name, target, {}, {}, {}};
  if (!compiler.knows(target)) {
    check.skipped = "NVRTC " + compiler.version() + " does not know " + target;
    return check;
  }
  const Result<CompileOutcome> compiled =
      compile_candidate(compiler, candidate, target, check.candidate);
  if (!compiled || !compiled->program) {
    check.error = compiled ? compiled->message : compiled.error().message;
  } else {
    check.resources = compiled->program->kernels;
  }
  return check;
}

}  // namespace

std::vector<CompileCheck> compile_all(const Compiler& compiler,
                                      const std::vector<Candidate>& candidates) {
  struct Job {
    const Candidate* candidate;
    std::string target;
  };
  std::vector<Job> jobs;
  for (const Candidate& candidate : candidates) {
    for (const std::string& target : targets_of(candidate.arch)) {
      jobs.push_back({&candidate, target});
    }
  }
  std::vector<CompileCheck> checks(jobs.size());
  for_each_in_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    checks[i] = compile_one(compiler, *jobs[i].candidate, jobs[i].target);
  });
  return checks;
}

bool all_compile(const std::vector<CompileCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const CompileCheck& check) { return check.error.empty(); });
}

std::string skipped_text(const std::vector<CompileCheck>& checks) {
  std::set<std::string> reasons;
  for (const CompileCheck& check : checks) reasons.insert(check.skipped);
  reasons.erase("");
  std::string text;
  for (const std::string& reason : reasons) text += "skipped: " + reason + "\n";
  return text;
}

std::string compile_text(const std::vector<CompileCheck>& checks) {
  Table table;
  table.columns = {{"candidate"},           {"target"},       {"kernel"}, {"registers", true},
                   {"static shared", true}, {"spills", true}, {"verdict"}};
  std::string errors;
  for (const CompileCheck& check : checks) {
    if (!check.error.empty()) {
      table.rows.push_back({check.candidate, check.target, "", "", "", "", "failed"});
      errors += check.candidate + " for " + check.target + ": " + check.error + "\n";
      continue;
    }
    if (!check.skipped.empty()) {
      table.rows.push_back({check.candidate, check.target, "", "", "", "", "skipped"});
    }
    for (const KernelResources& kernel : check.resources) {
      table.rows.push_back(
          {check.candidate, check.target, kernel.name, std::to_string(kernel.registers),
           std::to_string(kernel.static_shared_bytes),
           std::to_string(kernel.spill_store_bytes + kernel.spill_load_bytes), "compiles"});
    }
  }
  return to_text(table) + errors + skipped_text(checks);
}

}  // namespace rekernel
