#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/compile/compiler_message.h"
#include "harness/dataset/dataset_reader.h"
#include "harness/evaluation/referee.h"
#include "harness/evaluation/runner.h"
#include "harness/measuring/place.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/records/report.h"
#include "harness/report/evaluation_text.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/suggestion.h"
#include "reference/program_truth.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Result<Ok> choose_references(const ParsedArguments& arguments, const Problem& problem,
                             EvaluateOptions& options) {
  const std::vector<std::string> known = library_reference_ids(problem.id);
  const std::string& choice = arguments.get<std::string>("reference");
  if (choice == "headline") {
    options.references = headline_reference_ids(problem.id);
  } else if (choice == "all") {
    options.references = known;
  } else if (choice == "none") {
    options.references.clear();
  } else if (std::find(known.begin(), known.end(), choice) != known.end()) {
    options.references = {choice};
  } else {
    std::vector<std::string> words = {"headline", "all", "none"};
    words.insert(words.end(), known.begin(), known.end());
    return Error{"--reference " + choice + did_you_mean(choice, words) + ": expected one of " +
                 joined(words)};
  }
  if (arguments.flag("pytorch")) {
    if (!pytorch_is_installed()) return Error{"--pytorch: python3 here cannot import torch"};
    options.external_references = pytorch_ids(problem);
  }
  return Ok{};
}

Page evaluate_page() {
  Page page;
  page.description =
      "Compiles a candidate, judges it on fresh inputs against the float64 truth, and times it "
      "beside the library's reference. The candidate may lie anywhere.";
  page.takes({"directory", "KERNEL", "PROBLEM/NAME of a committed kernel, or a candidate's folder",
              Count::optional},
             text_value("KERNEL", {Names::kernel, Names::folder}));
  page.examples = {
      {"rekernel evaluate softmax/cluster_with_prefetch"},
      {"rekernel evaluate generated/softmax/cluster_with_prefetch --reference all --json"},
      {"rekernel evaluate softmax/cluster_with_prefetch --problem "
       "ops/problems/published/softmax.json",
       "with a problem's file, which may lie anywhere"}};
  page.group("A row of a data set")
      .add_options()("from-dataset", text_value("DIR", {Names::folder}),
                     "a data set, of which one row is judged again")(
          "row", text_value("ID"), "the row's id or name: softmax/r4.i2.b1");
  add_problem_option(page.group("Judging"));
  page.group("Judging").add_options()("seed", po::value<std::uint64_t>()->value_name("N"),
                                      "first of the inputs' seeds; fresh ones by default")(
      "own-sizes", po::bool_switch(),
      "judge a plan in axes at its problem's own sizes alone: faster, and no badge any_size")(
      "once", po::bool_switch(),
      "one checked run, no timing: for sanitizers and profilers, which also need "
      "REKERNEL_SANDBOX=off in the environment");
  page.group("Measuring")
      .add_options()("reference", text_value("ID")->default_value("headline"),
                     "what to time beside it: headline, all, none, or a reference's id")(
          "pytorch", po::bool_switch(), "time PyTorch as well, in alternating blocks")(
          "samples", whole_number(10, 10000)->default_value(60), "timed samples")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts")(
          "deadline", whole_number(1, 86400, "seconds")->default_value(120),
          "time that the candidate's runs may take")(
          "shared-gpu", po::bool_switch(),
          "go on although others use the GPU: such times mean little, and earn no badge");
  page.group("Output").add_options()("json", po::bool_switch(), "print the whole record as JSON");
  page.statuses[1] = "the candidate did not pass";
  return page;
}

/// What is judged, and what a data set says of it.
struct AskedCandidate {
  Candidate candidate;
  std::string recorded;  ///< "passed, 0.5086 ms on NVIDIA H200"; empty for a folder
};

Result<AskedCandidate> asked_candidate(const ParsedArguments& parsed) {
  const bool from_dataset = parsed.has("from-dataset");
  if (from_dataset != parsed.has("row")) {
    return Error{"--from-dataset DIR and --row ID: expected both, or neither"};
  }
  if (from_dataset == parsed.has("directory")) {
    return Error{
        "evaluate: expected KERNEL, or --from-dataset DIR --row ID; see rekernel help evaluate"};
  }
  if (!from_dataset) {
    Result<Candidate> candidate = named_candidate(parsed.get<std::string>("directory"));
    if (!candidate) return candidate.error();
    return AskedCandidate{std::move(*candidate), ""};
  }
  Result<std::vector<DatasetRow>> rows =
      read_dataset_rows(parsed.get<std::string>("from-dataset"), {parsed.get<std::string>("row")});
  if (!rows) return rows.error();
  DatasetRow& row = rows->front();
  std::string recorded = row.listed.status;
  if (row.listed.median_ns > 0) recorded += ", " + milliseconds(row.listed.median_ns) + " ms";
  if (!row.listed.device.empty()) recorded += " on " + row.listed.device;
  return AskedCandidate{std::move(row.candidate), std::move(recorded)};
}

}  // namespace

int evaluate_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, evaluate_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  const Result<AskedCandidate> asked = asked_candidate(parsed);
  if (!asked) return bad_input(asked.error());
  const Candidate* const candidate = &asked->candidate;

  EvaluateOptions evaluate_options;
  evaluate_options.samples = parsed.get<int>("samples");
  evaluate_options.run_deadline = std::chrono::seconds(parsed.get<int>("deadline"));
  evaluate_options.device = parsed.get<int>("device");
  if (parsed.has("seed")) evaluate_options.seed = parsed.get<std::uint64_t>("seed");
  Result<Ok> chosen =
      choose_references(parsed, *find_problem(candidate->problem), evaluate_options);
  if (!chosen) return bad_input(chosen.error());
  leave_time_for_torch_compile(evaluate_options);
  evaluate_options.shared_gpu = parsed.flag("shared-gpu");
  evaluate_options.other_sizes = !parsed.flag("own-sizes");
  if (parsed.flag("once")) {
    evaluate_options.mode = EvaluateOptions::Mode::once;
    evaluate_options.references.clear();
  }

  EvaluationReport report;
  {
    Progress progress;
    progress.show("evaluating " + candidate->problem + "/" + candidate->name + " …");
    std::optional<WhoseText> pytorch;
    if (!evaluate_options.external_references.empty()) {
      pytorch = whose_text(is_strangers(*find_problem(candidate->problem)));
    }
    MeasuringPlace place(evaluate_options.device,
                         [&](const std::string& holder) { progress.show(holder); });
    if (Result<Ok> begun = place.begin(pytorch); !begun) return bad_input(begun.error());
    report = place.launcher().evaluate(*candidate, evaluate_options);
  }
  if (!report.failure.empty()) return bad_input({report.failure});
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(report.evaluation));
  } else {
    std::cout << evaluation_text(report.evaluation);
    if (!asked->recorded.empty()) std::cout << "  the data set says: " << asked->recorded << "\n";
  }
  return report.evaluation.status == Status::passed ? exit_good : exit_verdict_failed;
}

int referee_worker_command(const std::vector<std::string>&) {
  return run_referee_worker(all_references());
}

int runner_worker_command(const std::vector<std::string>&) {
  return run_runner_worker(all_references());
}

int truth_worker_command(const std::vector<std::string>&) { return run_truth_worker(); }

}  // namespace rekernel
