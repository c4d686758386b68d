#include <iostream>

#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Page new_page() {
  Page page;
  page.description =
      "Makes a candidate's folder with a kernel that is correct and slow, to begin with.";
  page.takes({"problem", "PROBLEM", "what the candidate computes"},
             text_value("PROBLEM", {Names::problem}));
  page.takes({"name", "NAME", "its name: a-z, 0-9 and _"}, text_value("NAME"));
  page.examples = {{"rekernel new softmax my_softmax"}};
  page.group("Output").add_options()("into", text_value("DIR", {Names::folder}),
                                     "folder to make it in; generated/PROBLEM by default");
  return page;
}

}  // namespace

int new_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, new_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<const Problem*> problem = known_problem(parsed.get<std::string>("problem"));
  if (!problem) return bad_input(problem.error());
  const Candidate candidate = scaffold_candidate(**problem, parsed.get<std::string>("name"));
  const std::string plan = candidate_json(candidate);
  // The name comes from the command line: let the one validation judge it.
  if (auto valid = parse_candidate(plan, candidate.program.source, "new"); !valid) {
    return bad_input(valid.error());
  }
  std::filesystem::path parent;
  if (parsed.has("into")) {
    parent = parsed.get<std::string>("into");
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
