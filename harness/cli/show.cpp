#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/explain/problem_page.h"
#include "harness/explain/subject.h"
#include "harness/plan/plan_texts.h"
#include "harness/problems/problem_file.h"
#include "harness/project/candidates.h"
#include "harness/project/recorded.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

Result<std::vector<Bench>> recorded_on_all_devices(const fs::path& root) {
  std::vector<Bench> benches;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    const fs::path slow = fs::path(path).replace_filename(slow_file);
    if (std::error_code ignored; fs::exists(slow, ignored)) {
      const Result<Bench> more = load_record(root, slow);
      if (!more) return more.error();
      merge(*bench, *more);
    }
    benches.push_back(std::move(*bench));
  }
  return benches;
}

int show_problem(const ParsedArguments& parsed, const Problem& problem) {
  const Result<std::vector<Bench>> benches = recorded_on_all_devices(project_root());
  if (!benches) return bad_input(benches.error());
  const Result<std::vector<Candidate>> candidates = committed_candidates(project_root());
  if (!candidates) return bad_input(candidates.error());
  std::vector<std::string> kernels;
  for (const Candidate& one : *candidates) {
    if (one.problem == problem.id) kernels.push_back(one.name + " (" + to_string(one.arch) + ")");
  }
  const std::vector<ProblemOnDevice> devices = problem_on_devices(problem, *benches);
  std::cout << (parsed.flag("json")
                    ? pretty_json(problem_json(problem, kernels, devices))
                    : problem_page(problem, kernels, devices, table_format(parsed)));
  return exit_good;
}

std::string kernel_page(const ExplainedCandidate& subject) {
  const Candidate& candidate = *subject.candidate;
  std::string text = one_line(subject.name + ": " + subject.place, 1000) + "\n";
  text += wrapped(visible_lines(candidate.idea, 4000), page_columns) + "\n\nkernel.json\n" +
          quoted_lines(visible_lines(candidate_json(candidate), max_plan_bytes));
  const Result<const Problem*> problem = known_problem(candidate.problem);
  for (const Verdict& verdict : subject.verdicts) {
    text += "\n" + verdict_text(verdict, problem ? *problem : nullptr);
  }
  if (subject.verdicts.empty()) text += "\nNo time of it is recorded.\n";
  return text + "\nwhat it takes of each chip: rekernel explain " + one_line(subject.name, 200) +
         "\n";
}

int show_kernel(const ParsedArguments& parsed, const std::string& what) {
  const Result<ExplainedCandidate> subject = subject_in_folder(project_root(), what);
  if (!subject) return bad_input(subject.error());
  if (!subject->candidate) return bad_input({subject->refusal});
  if (!parsed.flag("json")) {
    std::cout << kernel_page(*subject);
    return exit_good;
  }
  const Result<const Problem*> problem = known_problem(subject->candidate->problem);
  boost::json::array verdicts;
  for (const Verdict& verdict : subject->verdicts) {
    verdicts.push_back(to_json(verdict, problem ? *problem : nullptr));
  }
  std::cout << pretty_json(
      boost::json::object{{"schema", 1},
                          {"name", subject->name},
                          {"place", subject->place},
                          {"sha256", candidate_sha256(*subject->candidate)},
                          {"plan", boost::json::parse(candidate_json(*subject->candidate))},
                          {"verdicts", std::move(verdicts)}});
  return exit_good;
}

int show_plan_format(const ParsedArguments& parsed) {
  std::cout << (parsed.flag("json") ? pretty_json(plan_schema()) : plan_page());
  return exit_good;
}

/// A problem's file, a problem, a kernel, or what neither is.
int show(const ParsedArguments& parsed, const std::string& what) {
  std::error_code ignored;
  if (what == "plan") return show_plan_format(parsed);
  if (what.ends_with(".json")) {
    const Result<Problem> problem = read_problem(what);
    return problem ? show_problem(parsed, *problem) : bad_input(problem.error());
  }
  if (what.find('/') != std::string::npos || fs::exists(fs::path(what) / "kernel.json", ignored)) {
    return show_kernel(parsed, what);
  }
  const Result<const Problem*> problem = known_problem(what);
  return problem ? show_problem(parsed, **problem) : bad_input(problem.error());
}

Page show_page() {
  Page page;
  page.description =
      "Shows all of a problem: its definition, tensors, tolerance, headers and kernels, and how "
      "fast "
      "chips and libraries are on it. Or a kernel's plan and recorded verdicts, or the keys of "
      "plans.";
  page.takes({"what", "WHAT",
              "a problem, a problem's file, PROBLEM/NAME of a kernel, a candidate's folder, or "
              "'plan': the keys of kernel.json",
              Count::optional},
             text_value("WHAT", {Names::problem, Names::kernel, Names::file, Names::folder}));
  page.examples = {{"rekernel show softmax"}, {"rekernel show softmax/cluster_with_prefetch"}};
  add_problem_option(page.group("Problem"));
  page.group("Output").add_options()("json", po::bool_switch(),
                                     "print it as JSON; of 'plan', the JSON Schema");
  add_table_options(page.group("Output"));
  return page;
}

}  // namespace

int show_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, show_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  if (!parsed.has("what")) {
    if (taken->size() == 1) return show_problem(parsed, *taken->front());
    return bad_input({"show: expected WHAT; see rekernel help show"});
  }
  return show(parsed, parsed.get<std::string>("what"));
}

}  // namespace rekernel
