#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "harness/audit/blinding.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"
#include "harness/cli/command.h"
#include "harness/evaluation/launcher.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/table.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::chrono::minutes deadline{10};

Table separation_table(const std::vector<Separation>& found) {
  Table table;
  table.columns = {
      {"question"}, {"runs"}, {"balanced accuracy", true}, {"95% interval"}, {"most telling"}};
  for (const Separation& one : found) {
    table.rows.push_back(
        {one.question, std::to_string(one.first) + " and " + std::to_string(one.second),
         printed("%.3f", one.balanced_accuracy),
         printed("%.3f", one.low) + " to " + printed("%.3f", one.high), one.telling});
  }
  return table;
}

boost::json::object to_json(const Separation& one) {
  return {{"question", one.question},
          {"first", one.first},
          {"second", one.second},
          {"balanced_accuracy", printed("%.4f", one.balanced_accuracy)},
          {"low", printed("%.4f", one.low)},
          {"high", printed("%.4f", one.high)},
          {"telling", one.telling}};
}

Page blinding_page() {
  Page page;
  page.description =
      "Runs a kernel that records everything that it can see, and asks how well that tells timed, "
      "judged and repeated runs apart. Half of the guesses are right where nothing can be told.";
  page.takes({"problem", "PROBLEM", "whose runs, inputs and references", Count::optional},
             text_value("PROBLEM", {Names::problem})->default_value("softmax"));
  page.examples = {{"rekernel blinding conv2d --runs 500"}};
  page.group("Measuring")
      .add_options()("runs", whole_number(20, 5000)->default_value(500),
                     "runs of each kind at least")(
          "planted-gap", whole_number(0, 100000, "microseconds")->default_value(0),
          "a pause before runs that are not timed, which must be found")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts");
  page.group("Output").add_options()("json", po::bool_switch(), "print the figures as JSON");
  page.statuses[1] = "a kernel can tell";
  return page;
}

}  // namespace

int blinding_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, blinding_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const std::string& id = parsed.get<std::string>("problem");
  const Result<const Problem*> known = known_problem(id);
  if (!known) return bad_input(known.error());
  const Problem* problem = *known;
  const int runs = parsed.get<int>("runs");
  const int gap = parsed.get<int>("planted-gap");

  EvaluateOptions evaluate_options;
  evaluate_options.mode = EvaluateOptions::Mode::blinding;
  evaluate_options.samples = runs;
  evaluate_options.planted_gap = std::chrono::microseconds(gap);
  evaluate_options.device = parsed.get<int>("device");
  evaluate_options.run_deadline = deadline;
  evaluate_options.references = headline_reference_ids(id);

  EvaluationReport report;
  {
    Progress progress;
    progress.show("runs of " + id + " that tell what they see …");
    LocalLauncher launcher(nullptr, [&](const std::string& holder) { progress.show(holder); });
    report = launcher.evaluate(observing_candidate(*problem), evaluate_options);
  }
  if (!report.failure.empty()) return bad_input({report.failure});
  if (report.evaluation.status != Status::passed) {
    return bad_input({std::string("the kernel that tells what it sees is ") +
                      to_string(report.evaluation.status) + ": " + report.evaluation.message});
  }
  const std::vector<Separation> found = separations(report.sightings);
  if (parsed.flag("json")) {
    boost::json::array all;
    for (const Separation& one : found) all.push_back(to_json(one));
    std::cout << pretty_json(boost::json::object{{"problem", id}, {"questions", std::move(all)}});
  } else {
    std::cout << to_text(separation_table(found));
  }
  const bool blind = std::none_of(found.begin(), found.end(),
                                  [](const Separation& one) { return one.can_tell(); });
  return blind ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
