#include "harness/project/compile_all.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "harness/base/parallel.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/compile/compile_isolated.h"
#include "harness/compile/compiler_message.h"
#include "harness/problems/other_sizes.h"
#include "harness/problems/sizes.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace {

CompileCheck blank_check(const Candidate& candidate, const std::string& target) {
  CompileCheck check;
  check.candidate = candidate.problem + "/" + candidate.name;
  check.sizes = sizes_text(candidate.sizes);
  check.target = target;
  return check;
}

std::string named(const CompileCheck& check) {
  return check.candidate + (check.sizes.empty() ? "" : " at " + check.sizes);
}

CompileCheck compile_one(const Compiler& compiler, const Candidate& candidate,
                         const std::string& target) {
  CompileCheck check = blank_check(candidate, target);
  if (!compiler.knows(target)) {
    check.skipped = "NVRTC " + compiler.version() + " does not know " + target;
    return check;
  }
  const Result<CompileOutcome> compiled =
      compile_candidate(compiler, candidate, target, check.candidate);
  if (!compiled || !compiled->program) {
    check.error = compiled ? compiled->message : compiled.error().message;
    check.status = compiled ? compiled->status : Status::compile_failed;
  } else {
    check.resources = compiled->program->kernels;
    check.warnings = warnings_in(compiled->program->log);
  }
  return check;
}

/// Texts of the checks that have one, once for all targets where `key` gives the same.
template <class Text, class Key>
std::vector<CompilerWords> grouped(const std::vector<CompileCheck>& checks, Text text, Key key) {
  std::vector<CompilerWords> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const CompileCheck& check : checks) {
    if (text(check).empty()) continue;
    const auto [place, is_new] = places.try_emplace({named(check), key(check)}, groups.size());
    if (is_new) groups.push_back({named(check), {}, text(check), check.status});
    groups[place->second].targets.push_back(check.target);
  }
  return groups;
}

}  // namespace

std::string CompilerWords::where() const { return candidate + " for " + joined(targets); }

std::vector<CompilerWords> compile_failures(const std::vector<CompileCheck>& checks) {
  const auto error = [](const CompileCheck& check) {
    return for_any_target(check.error, check.target);
  };
  return grouped(checks, error, [&](const CompileCheck& check) { return headline(error(check)); });
}

std::vector<CompilerWords> compile_warnings(const std::vector<CompileCheck>& checks) {
  const auto warnings = [](const CompileCheck& check) { return check.warnings; };
  return grouped(checks, warnings, warnings);
}

std::vector<CompileCheck> compile_all(const Compiler& compiler,
                                      const std::vector<Candidate>& candidates) {
  std::vector<CompileJob> jobs;
  for (const Candidate& candidate : candidates) {
    for (const std::string& target : targets_of(candidate.arch)) {
      if (may_run_on(candidate.program, target)) jobs.push_back({&candidate, target});
    }
  }
  return compile_jobs(compiler, jobs);
}

std::vector<CompileCheck> compile_jobs(const Compiler& compiler,
                                       const std::vector<CompileJob>& jobs) {
  std::vector<CompileCheck> checks(jobs.size());
  std::mutex shown;
  std::size_t done = 0;
  Progress progress;
  progress.step(0, jobs.size(), "compiling");
  for_each_in_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    checks[i] = compile_one(compiler, *jobs[i].candidate, jobs[i].target);
    const std::lock_guard lock(shown);
    progress.step(++done, jobs.size(), "compiling");
  });
  return checks;
}

namespace {

/// The lowest target that a candidate can be compiled for here; empty where there is none.
std::string first_target(const Compiler& compiler, const Candidate& candidate) {
  for (const std::string& target : targets_of(candidate.arch)) {
    if (may_run_on(candidate.program, target) && compiler.knows(target)) return target;
  }
  return "";
}

}  // namespace

std::vector<CompileCheck> check_other_sizes(const Compiler& compiler,
                                            const std::vector<Candidate>& candidates) {
  constexpr std::uint64_t seed = 1;
  constexpr std::size_t count = 4;  // the least, edges, ones and primes
  std::vector<CompileCheck> checks;
  std::vector<Candidate> sized;
  std::vector<std::string> targets;
  for (const Candidate& candidate : candidates) {
    const Result<std::shared_ptr<const Problem>> problem = problem_of(candidate);
    const std::string target = first_target(compiler, candidate);
    if (!candidate.is_in_axes() || !problem || target.empty()) continue;
    for (const Problem& instance : drawn_instances(**problem, seed, count)) {
      Result<Candidate> there = at_sizes(candidate, instance);
      if (there) {
        sized.push_back(*std::move(there));
        targets.push_back(target);
        continue;
      }
      CompileCheck& check = checks.emplace_back(blank_check(candidate, target));
      check.sizes = sizes_text(sizes_of(instance));
      check.error = there.error().message;
      check.status = Status::invalid_plan;
    }
  }
  std::vector<CompileJob> jobs;
  for (std::size_t i = 0; i < sized.size(); ++i) jobs.push_back({&sized[i], targets[i]});
  for (CompileCheck& check : compile_jobs(compiler, jobs)) checks.push_back(std::move(check));
  return checks;
}

std::string other_sizes_text(const std::vector<CompileCheck>& checks) {
  std::map<std::string, std::vector<const CompileCheck*>> by_candidate;
  for (const CompileCheck& check : checks) by_candidate[check.candidate].push_back(&check);
  std::string text;
  for (const auto& [candidate, all] : by_candidate) {
    std::vector<std::string> sizes;
    for (const CompileCheck* check : all) {
      if (check->error.empty()) sizes.push_back(check->sizes);
    }
    if (sizes.size() < all.size()) continue;
    text += wrapped(candidate + ": its plan is in axes, and also good for " + all.front()->target +
                        " at " + joined(sizes, "; "),
                    page_columns, 2) +
            "\n";
  }
  return text;
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

Table compile_table(const std::vector<CompileCheck>& checks) {
  Table table;
  table.columns = {{.heading = "candidate"},
                   {.heading = "target"},
                   {.heading = "kernel"},
                   {.heading = "registers", .right_aligned = true},
                   {.heading = "static shared",
                    .right_aligned = true,
                    .short_heading = "shared",
                    .csv = "static_shared_bytes"},
                   {.heading = "stack", .right_aligned = true, .csv = "stack_bytes"},
                   {.heading = "spills", .right_aligned = true, .csv = "spill_bytes"},
                   {.heading = "verdict", .good = "compiles", .neutral = "skipped"}};
  for (const CompileCheck& check : checks) {
    if (!check.error.empty()) {
      table.rows.push_back({check.candidate, check.target, "", "", "", "", "", "failed"});
      continue;
    }
    if (!check.skipped.empty()) {
      table.rows.push_back({check.candidate, check.target, "", "", "", "", "", "skipped"});
    }
    for (const KernelResources& kernel : check.resources) {
      table.rows.push_back(
          {check.candidate, check.target, kernel.name, std::to_string(kernel.registers),
           std::to_string(kernel.static_shared_bytes), std::to_string(kernel.stack_bytes),
           std::to_string(kernel.spill_store_bytes + kernel.spill_load_bytes), "compiles"});
    }
  }
  return table;
}

namespace {

/// Rows stand as compile_table() made them: one for a check that failed or was skipped, else one a
/// kernel.
void add_errors(Table& table, const std::vector<CompileCheck>& checks) {
  table.columns.push_back({.heading = "error"});
  std::size_t row = 0;
  for (const CompileCheck& check : checks) {
    const std::size_t rows =
        !check.error.empty() || !check.skipped.empty() ? 1 : check.resources.size();
    for (std::size_t i = 0; i < rows; ++i) table.rows[row++].push_back(headline(check.error));
  }
}

}  // namespace

std::string failures_text(const std::vector<CompileCheck>& checks) {
  std::string text;
  for (const CompilerWords& failure : compile_failures(checks)) {
    text += failure.where() + ": " + told_message(failure.text);
  }
  return text;
}

std::string compile_text(const std::vector<CompileCheck>& checks, const TableFormat& format) {
  Table table = compile_table(checks);
  if (format.csv) {
    add_errors(table, checks);
    return format.shown(table);
  }
  std::string text = format.shown(table);
  text += failures_text(checks);
  for (const CompilerWords& warnings : compile_warnings(checks)) {
    text += warnings.where() + ": warnings:\n" + quoted_lines(warnings.text);
  }
  return text + skipped_text(checks);
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
                     {"sizes", check.sizes},
                     {"target", check.target},
                     {"status", to_string(check.status)},
                     {"error", check.error},
                     {"skipped", check.skipped},
                     {"warnings", check.warnings},
                     {"kernels", std::move(kernels)}});
  }
  return array;
}

}  // namespace rekernel
