#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile.h"
#include "harness/evaluation/launcher.h"
#include "harness/explain/explanation.h"
#include "harness/explain/listing.h"
#include "harness/measuring/references.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Result<ExplainedCandidate> find_subject(const std::vector<std::string>& words) {
  const std::filesystem::path root = project_root();
  if (words.size() == 1) return subject_in_folder(root, words.front());
  return subject_of_search(root, words[0], words[1]);
}

/// A verdict that is made now, on this machine's first GPU.
Result<Verdict> verdict_made_now(const Candidate& candidate, int device) {
  EvaluateOptions options;
  options.references = headline_reference_ids(candidate.problem);
  options.device = device;
  Progress progress;
  progress.show("evaluating " + candidate.problem + "/" + candidate.name + " …");
  LocalLauncher launcher(nullptr, [&](const std::string& holder) { progress.show(holder); });
  const EvaluationReport report = launcher.evaluate(candidate, options);
  if (!report.failure.empty()) return Error{report.failure};
  return verdict_of(report.evaluation, report.device ? report.device->name : "this GPU",
                    "evaluated now");
}

/// PTX, machine code or both of one target.
int print_listings(const ParsedArguments& parsed, const ExplainedCandidate& subject) {
  if (!subject.candidate) return bad_input({subject.name + ": " + subject.refusal});
  const std::string target =
      parsed.has("target") ? parsed.get<std::string>("target") : to_string(subject.candidate->arch);
  const std::vector<std::string> targets = targets_of(subject.candidate->arch);
  if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
    return bad_input({"--target " + target + ": expected one of " + joined(targets)});
  }
  const Result<Listing> listing = make_listing(*subject.candidate, target);
  if (!listing) return bad_input({subject.name + ": " + listing.error().message});
  if (parsed.flag("ptx")) {
    std::cout << with_source_lines(listing->ptx, subject.candidate->program.source);
  }
  if (!parsed.flag("sass")) return exit_good;
  const Result<std::string> sass = disassembled(*listing);
  if (!sass) return bad_input(sass.error());
  std::cout << *sass;
  return exit_good;
}

Page explain_page() {
  Page page;
  page.description =
      "Says why a candidate was refused or is slow, and what to change: the compiler's words, what "
      "its launches take of each chip, its errors beside their bounds, and its place under the "
      "roofline.";
  page.takes(
      {"what", "WHAT",
       "a candidate's folder, PROBLEM/NAME of a committed kernel, or a search and the id of a "
       "candidate of it",
       Count::some},
      list_value("WHAT", {Names::kernel, Names::folder, Names::search, Names::anything}));
  page.usage = "WHAT [CANDIDATE] [options]";
  page.examples = {{"rekernel explain softmax/cluster_with_prefetch"},
                   {"rekernel explain softmax r1.i1.b1"}};
  add_problem_option(page.group("Candidate"));
  page.group("Judging").add_options()("evaluate", po::bool_switch(),
                                      "judge and time it now, on this machine's GPU");
  add_device_option(page.group("Judging"));
  page.group("Machine code")
      .add_options()("ptx", po::bool_switch(),
                     "print the PTX with the source's lines, and no more")(
          "sass", po::bool_switch(),
          "print the machine code with the source's lines; needs nvdisasm of a CUDA toolkit")(
          "target", text_value("TARGET"),
          "of --ptx and --sass: sm_90a, say; the plan's by default");
  page.group("Output").add_options()("json", po::bool_switch(), "print everything as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "the candidate does not compile, or did not pass";
  return page;
}

}  // namespace

int explain_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, explain_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const auto& words = parsed.get<std::vector<std::string>>("what");
  if (words.size() > 2) {
    return bad_input(
        {"explain: expected a candidate folder, PROBLEM/NAME, or a search and the id "
         "of a candidate"});
  }
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  Result<ExplainedCandidate> subject = find_subject(words);
  if (!subject) return bad_input(subject.error());
  if (parsed.flag("ptx") || parsed.flag("sass")) return print_listings(parsed, *subject);
  if (parsed.flag("evaluate") && subject->candidate) {
    Result<Verdict> verdict = verdict_made_now(*subject->candidate, parsed.get<int>("device"));
    if (!verdict) return bad_input(verdict.error());
    // What is true now counts.
    subject->verdicts = {std::move(*verdict)};
  }
  const Explanation explanation = explain(std::move(*subject), Compiler::load());
  const TableFormat format = table_format(parsed);
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(explanation));
  } else if (format.csv) {
    std::cout << format.shown(launch_table(explanation.uses));
  } else {
    std::cout << explanation_text(explanation, format);
  }
  return explanation.refused() ? exit_verdict_failed : exit_good;
}

int listing_worker_command(const std::vector<std::string>&) { return run_listing_worker(); }

}  // namespace rekernel
