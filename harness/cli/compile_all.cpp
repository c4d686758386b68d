#include "harness/cli/compile_all.h"

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <mutex>
#include <thread>

#include "harness/compile/compile_isolated.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

CompileCheck compile_one(const Compiler& compiler, const Candidate& candidate,
                         const std::string& target) {
  CompileCheck check{candidate.problem + "/" + candidate.name, target, {}, {}};
  const std::string header = problem_header(*find_problem(candidate.problem));
  const Result<CompileOutcome> compiled =
      compile_isolated(compiler, candidate.program, header, target);
  if (!compiled || !compiled->program) {
    check.error = compiled ? compiled->message : compiled.error().message;
    return check;
  }
  check.resources = compiled->program->kernels;
  Result<Ok> launches = check_launches(candidate.program, *compiled->program, check.candidate);
  if (!launches) check.error = launches.error().message;
  return check;
}

}  // namespace

std::vector<std::string> targets_of(Arch arch) {
  switch (arch) {
    case Arch::sm_80:
      return {"sm_80", "sm_89", "sm_90a"};
    case Arch::sm_89:
      return {"sm_89", "sm_90a"};
    case Arch::sm_90a:
      return {"sm_90a"};
  }
  return {};
}

std::vector<CompileCheck> compile_all(const Compiler& compiler,
                                      const std::vector<Candidate>& candidates) {
  std::vector<CompileJob> jobs;
  for (const Candidate& candidate : candidates) {
    for (const std::string& target : targets_of(candidate.arch)) {
      jobs.push_back({&candidate, target});
    }
  }
  return compile_jobs(compiler, jobs);
}

std::vector<CompileCheck> compile_jobs(const Compiler& compiler,
                                       const std::vector<CompileJob>& jobs) {
  std::vector<CompileCheck> checks(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex shown;
  std::size_t done = 0;
  Progress progress;
  progress.step(0, jobs.size(), "compiling");
  {
    std::vector<std::jthread> workers;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned worker = 0; worker < cores; ++worker) {
      workers.emplace_back([&] {
        for (std::size_t job; (job = next++) < jobs.size();) {
          checks[job] = compile_one(compiler, *jobs[job].candidate, jobs[job].target);
          const std::lock_guard lock(shown);
          progress.step(++done, jobs.size(), "compiling");
        }
      });
    }
  }
  return checks;
}

Table compile_table(const std::vector<CompileCheck>& checks) {
  Table table;
  table.columns = {{.heading = "candidate"},
                   {.heading = "target"},
                   {.heading = "kernel"},
                   {.heading = "registers", .right_aligned = true},
                   {.heading = "static shared", .right_aligned = true, .short_heading = "shared"},
                   {.heading = "spills", .right_aligned = true},
                   {.heading = "verdict", .good = "compiles"}};
  for (const CompileCheck& check : checks) {
    if (!check.error.empty()) {
      table.rows.push_back({check.candidate, check.target, "", "", "", "", "failed"});
      continue;
    }
    for (const KernelResources& kernel : check.resources) {
      table.rows.push_back(
          {check.candidate, check.target, kernel.name, std::to_string(kernel.registers),
           std::to_string(kernel.static_shared_bytes),
           std::to_string(kernel.spill_store_bytes + kernel.spill_load_bytes), "compiles"});
    }
  }
  return table;
}

std::string compile_text(const std::vector<CompileCheck>& checks, const TableFormat& format) {
  std::string text = format.shown(compile_table(checks));
  for (const CompileCheck& check : checks) {
    // A compiler's log has its own lines.
    if (check.error.empty() || format.csv) continue;
    text += check.candidate + " for " + check.target + ": " + check.error + "\n";
  }
  return text;
}

boost::json::array compile_json(const std::vector<CompileCheck>& checks) {
  boost::json::array array;
  for (const CompileCheck& check : checks) {
    boost::json::array kernels;
    for (const KernelResources& kernel : check.resources) {
      kernels.push_back({{"name", kernel.name},
                         {"registers", kernel.registers},
                         {"static_shared_bytes", kernel.static_shared_bytes},
                         {"stack_bytes", kernel.stack_bytes},
                         {"spill_bytes", kernel.spill_store_bytes + kernel.spill_load_bytes}});
    }
    array.push_back({{"candidate", check.candidate},
                     {"target", check.target},
                     {"error", check.error},
                     {"kernels", std::move(kernels)}});
  }
  return array;
}

}  // namespace rekernel
