#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile_isolated.h"
#include "harness/explain/launch_use.h"
#include "harness/explain/subject.h"
#include "harness/project/candidates.h"
#include "harness/project/compile_all.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Page check_page() {
  Page page;
  page.description =
      "Compiles kernels for every architecture that they claim, as an evaluation would, and says "
      "what each takes of a multiprocessor. Needs no GPU.";
  page.takes({"directory", "KERNEL",
              "kernels as PROBLEM/NAME, problems or candidates' folders; every committed kernel by "
              "default",
              Count::any},
             list_value("KERNEL", {Names::kernel, Names::problem, Names::folder}));
  page.examples = {{"rekernel check softmax/cluster_with_prefetch"}};
  add_problem_option(page.group("Candidates"));
  page.group("Output").add_options()("json", po::bool_switch(), "print the findings as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "a kernel does not compile, or no chip can launch it";
  return page;
}

}  // namespace

int check_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, check_page());
  if (parsed.exit_status) return *parsed.exit_status;

  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  Result<std::vector<Candidate>> candidates =
      parsed.has("directory") ? named_candidates(parsed.get<std::vector<std::string>>("directory"))
                              : committed_candidates(project_root());
  if (!candidates) return bad_input(candidates.error());
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return bad_input(compiler.error());

  const std::vector<CompileCheck> checks = compile_all(*compiler, *candidates);
  const std::vector<CompileCheck> at_other_sizes = check_other_sizes(*compiler, *candidates);
  const std::vector<std::string> refused = refused_launches(*candidates, checks);
  if (parsed.flag("json")) {
    std::vector<CompileCheck> all = checks;
    all.insert(all.end(), at_other_sizes.begin(), at_other_sizes.end());
    std::cout << pretty_json(compile_json(all));
  } else {
    std::cout << compile_text(checks, table_format(parsed));
  }
  // Beside JSON and CSV, which have a place for what the compiler says alone.
  std::ostream& words = parsed.flag("json") || parsed.flag("csv") ? std::cerr : std::cout;
  for (const std::string& line : refused) words << line << "\n";
  if (!parsed.flag("json"))
    words << failures_text(at_other_sizes) << other_sizes_text(at_other_sizes);
  return all_compile(checks) && all_compile(at_other_sizes) && refused.empty()
             ? exit_good
             : exit_verdict_failed;
}

int compile_worker_command(const std::vector<std::string>&) { return run_compile_worker(); }

}  // namespace rekernel
