#include <iostream>

#include "harness/base/environment.h"
#include "harness/cli/command.h"
#include "harness/problems/catalog.h"
#include "harness/process/tool.h"
#include "harness/project/root.h"
#include "harness/service/problem_json.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// The problems as JSON, a line each; all of them for "all".
Result<std::string> problem_lines(std::vector<std::string> names) {
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const Problem& problem : catalog()) names.push_back(problem.id);
  }
  std::string lines;
  for (const std::string& name : names) {
    const Result<std::string> problem = service::problem_json(name);
    if (!problem) return problem.error();
    lines += *problem + "\n";
  }
  return lines;
}

std::vector<std::string> environment_with_package() {
  const std::string present = environment("PYTHONPATH");
  return environment_with({{"PYTHONPATH", (project_root() / "harness" / "python").string() +
                                              (present.empty() ? "" : ":" + present)},
                           {"PYTHONDONTWRITEBYTECODE", "1"}});
}

Page task_page() {
  Page page;
  page.description = "Writes problems as tasks of Harbor, each with its verifier, for agents.";
  page.takes({"problem", "PROBLEM", "ids of problems, or all", Count::some},
             list_value("PROBLEM", {Names::problem}));
  page.usage = "PROBLEM… --into DIR [options]";
  page.examples = {{"rekernel task softmax --into tasks"}};
  page.group("Output").add_options()("into", text_value("DIR", {Names::folder}),
                                     "folder for the tasks' folders")(
      "reward", text_value("ARGUMENTS")->default_value("\"speedup\""),
      "arguments of the Python package's Reward");
  return page;
}

}  // namespace

int task_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, task_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (!parsed.has("into")) return bad_input({"task: expected --into DIR"});
  const Result<std::string> problems =
      problem_lines(parsed.get<std::vector<std::string>>("problem"));
  if (!problems) return bad_input(problems.error());
  ToolCommand tool;
  tool.arguments = {"python3",
                    "-m",
                    "rekernel.adapters.harbor",
                    "--from-input",
                    "--into",
                    parsed.get<std::string>("into"),
                    "--reward",
                    parsed.get<std::string>("reward")};
  tool.input = *problems;
  tool.environment = environment_with_package();
  tool.deadline = std::chrono::minutes(5);
  const Result<ToolOutcome> outcome = run_tool(tool);
  if (!outcome) return bad_input(outcome.error());
  std::cout << outcome->output;
  if (!outcome->good()) return bad_input({outcome->last_words});
  return exit_good;
}

}  // namespace rekernel
