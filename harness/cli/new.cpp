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

int new_command(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("of", text_value("PROBLEM", {Names::problem}),
                        "problem id; left out with --problem FILE")(
      "name", po::value<std::string>(), "name of the candidate: a-z, 0-9 and _")(
      "into", po::value<std::string>(), "folder to make it in; generated/PROBLEM by default")(
      "in-axes", po::bool_switch(),
      "write its plan in axes, for any sizes of the problem, where the made code is for such");
  add_problem_option(options);
  po::positional_options_description positional;
  positional.add("of", 1).add("name", 1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel new [PROBLEM] NAME [options]",
                      "rekernel new softmax my_softmax\n"
                      "  rekernel new softmax my_softmax --into . --problem "
                      "ops/problems/published/softmax.json",
                      options, positional);
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
