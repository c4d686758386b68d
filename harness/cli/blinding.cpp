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

}  // namespace

int blinding_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("problem", po::value<std::string>()->default_value("softmax"),
                        "whose runs, inputs and references")(
      "runs", po::value<int>()->default_value(500), "of each kind at least, 20 to 5000")(
      "planted-gap", po::value<int>()->default_value(0),
      "microseconds of a pause before runs that are not timed, which must be found, 0 to 100000")(
      "device", po::value<int>()->default_value(0), "number of the GPU, as nvidia-smi counts")(
      "json", po::bool_switch(), "print the figures as JSON");
  po::positional_options_description positional;
  positional.add("problem", 1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel blinding [PROBLEM] [options]",
                      "rekernel blinding conv2d --runs 500", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  const std::string& id = parsed.get<std::string>("problem");
  const Result<const Problem*> known = known_problem(id);
  if (!known) return bad_input(known.error());
  const Problem* problem = *known;
  const int runs = parsed.get<int>("runs");
  if (runs < 20 || runs > 5000) return bad_input({"--runs: expected 20 to 5000"});
  const int gap = parsed.get<int>("planted-gap");
  if (gap < 0 || gap > 100000) return bad_input({"--planted-gap: expected 0 to 100000"});

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
