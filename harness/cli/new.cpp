#include <iostream>

#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/project/scaffold_in_axes.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Page new_page() {
  Page page;
  page.description =
      "Makes a candidate's folder with a kernel that is correct and slow, to begin with.";
  page.usage = "[PROBLEM] NAME [options]";
  page.takes({"of", "PROBLEM", "what the candidate computes; left out with --problem FILE"},
             text_value("PROBLEM", {Names::problem}));
  page.takes({"name", "NAME", "its name: a-z, 0-9 and _", Count::optional}, text_value("NAME"));
  page.examples = {{"rekernel new softmax my_softmax"},
                   {"rekernel new softmax my_softmax --into . --problem "
                    "ops/problems/published/softmax.json"}};
  add_problem_option(page.group("Candidate"));
  page.group("Candidate")
      .add_options()(
          "in-axes", po::bool_switch(),
          "write its plan in axes, for any sizes of the problem, where the made code is for such");
  page.group("Output").add_options()("into", text_value("DIR", {Names::folder}),
                                     "folder to make it in; generated/PROBLEM by default");
  return page;
}

}  // namespace

int new_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, new_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  // With --problem, the one word is the name.
  const bool name_alone = parsed.has("of") && !parsed.has("name") && taken->size() == 1;
  if (!name_alone && !parsed.has("name")) {
    return bad_input({"new: expected a problem and a name"});
  }
  const Result<const Problem*> problem =
      name_alone ? taken->front() : asked_problem(parsed, "of", *taken);
  if (!problem) return bad_input(problem.error());
  Candidate candidate =
      scaffold_candidate(**problem, parsed.get<std::string>(name_alone ? "of" : "name"));
  const std::string plan = candidate_json(candidate);
  // The name comes from the command line: let the one validation judge it.
  if (auto valid = parse_candidate(plan, candidate.program.source, "new"); !valid) {
    return bad_input(valid.error());
  }
  if (parsed.flag("in-axes")) {
    std::optional<Candidate> in_axes = scaffold_in_axes(**problem, candidate.name);
    if (!in_axes) {
      return bad_input({"new: the code made for " + (*problem)->id +
                        " is for its own sizes alone: expected no --in-axes"});
    }
    candidate = *std::move(in_axes);
  }
  std::filesystem::path parent;
  if (parsed.has("into")) {
    parent = parsed.get<std::string>("into");
  } else if (is_strangers(**problem)) {
    return bad_input(
        {"new: " + (*problem)->id + " is no problem of the project: expected --into FOLDER"});
  } else {
    const Result<std::filesystem::path> root = own_project();
    if (!root) return bad_input({root.error().message + ", or --into FOLDER"});
    parent = *root / "generated" / (*problem)->id;
  }
  const std::filesystem::path folder = parent / candidate.name;
  if (std::filesystem::exists(folder)) {
    return bad_input({folder.string() + " exists already; choose another name"});
  }
  if (Result<Ok> written = write_candidate(folder, candidate); !written) {
    return bad_input(written.error());
  }
  std::cout << "made " << folder.string() << "; next: rekernel check " << folder.string()
            << " && rekernel evaluate " << folder.string() << "\n"
            << "kernel.json's keys: `rekernel show plan`, or generated/PLAN.md with "
               "kernel.schema.json for editors; the problem: `rekernel show "
            << (*problem)->id << "`\n";
  return exit_good;
}

}  // namespace rekernel
