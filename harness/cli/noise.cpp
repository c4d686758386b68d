#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "harness/candidate/candidate.h"
#include "harness/cli/command.h"
#include "harness/compile/compiler_message.h"
#include "harness/evaluation/launcher.h"
#include "harness/gpu/exclusive.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/records/noise.h"
#include "harness/records/record.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::chrono::seconds noise_deadline{3600};

/// One piece of work to time against itself. A reference needs a candidate beside it, which is
/// compiled and never run: the problem's scaffold.
struct NoiseSubject {
  Candidate candidate;
  std::string reference;  ///< empty: the candidate itself
};

Result<NoiseSubject> noise_subject(const std::string& argument) {
  if (const Problem* problem = find_problem(argument)) {
    const std::vector<std::string> headline = headline_reference_ids(problem->id);
    if (headline.empty()) {
      return Error{problem->id + " has no library reference to time; name a kernel"};
    }
    return NoiseSubject{scaffold_candidate(*problem, "scaffold"), headline.front()};
  }
  Result<Candidate> candidate = named_candidate_beside_problems(argument);
  if (!candidate) return candidate.error();
  return NoiseSubject{std::move(*candidate), {}};
}

/// Appends the runs of one start to the row. Every process is a new one.
Result<Ok> measure_start(const NoiseSubject& subject, const EvaluateOptions& options,
                         const GpuLock::OnWait& waiting, NoiseRecord& record, NoiseRow& row) {
  EvaluationReport report = LocalLauncher(nullptr, waiting).evaluate(subject.candidate, options);
  const std::string name = row.problem + "/" + row.subject + ": ";
  if (!report.failure.empty()) return Error{name + report.failure};
  const Evaluation& evaluation = report.evaluation;
  if (evaluation.status != Status::passed) {
    return Error{name + to_string(evaluation.status) + ": " + headline(evaluation.message)};
  }
  if (report.device) {
    record.device_name = report.device->name;
    record.sm = std::to_string(report.device->major) + "." + std::to_string(report.device->minor);
  }
  if (subject.reference.empty()) row.sha256 = evaluation.sha256;
  if (!evaluation.references.empty()) row.details = evaluation.references.front().details;
  const int rejected_before = row.conditions.rejected_samples;
  row.conditions = evaluation.conditions;
  row.conditions.rejected_samples += rejected_before;
  std::move(report.noise.begin(), report.noise.end(), std::back_inserter(row.runs));
  return Ok{};
}

Result<NoiseRow> measure(const NoiseSubject& subject, EvaluateOptions options, int starts,
                         const GpuLock::OnWait& waiting, NoiseRecord& record) {
  const int runs = options.noise_runs;
  NoiseRow row;
  row.problem = subject.candidate.problem;
  row.subject = subject.reference.empty() ? subject.candidate.name : subject.reference;
  if (!subject.reference.empty()) {
    options.noise_subject = subject.reference;
    options.references = {subject.reference};
  }
  row.starts = std::min(starts, runs);
  for (int start = 0; start < row.starts; ++start) {
    options.noise_runs = runs / row.starts + (start < runs % row.starts ? 1 : 0);
    Result<Ok> measured = measure_start(subject, options, waiting, record, row);
    if (!measured) return measured.error();
  }
  row.measured = today();
  return row;
}

Page noise_page() {
  Page page;
  page.description =
      "Times one piece of work against itself, over and over. Both sides are equal, so that their "
      "interval should hold 100% in 95 of 100 runs; harness/TIMING.md shows how it fares.";
  page.takes({"subject", "PROBLEM|KERNEL",
              "what to time: the headline reference of a problem, or "
              "a kernel; conv2d and softmax by default",
              Count::any},
             list_value("NAME", {Names::problem, Names::kernel, Names::folder})
                 ->default_value({"conv2d", "softmax"}, "conv2d softmax"));
  page.examples = {{"rekernel noise conv2d softmax/cluster_with_prefetch --record"}};
  page.group("Measuring")
      .add_options()("runs", whole_number(1, 10000)->default_value(100), "runs of each")(
          "starts", whole_number(1, 10000)->default_value(10),
          "pairs of processes that the runs are spread over")(
          "samples", whole_number(10, 10000)->default_value(60), "timed samples of a side")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts");
  page.group("Output").add_options()("record", po::bool_switch(),
                                     "merge the samples into results/<gpu>/noise.json")(
      "json", po::bool_switch(), "print the record, raw samples and all, as JSON");
  page.statuses[1] = "the intervals miss the criterion";
  return page;
}

}  // namespace

int noise_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, noise_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }

  EvaluateOptions evaluate_options;
  evaluate_options.mode = EvaluateOptions::Mode::noise;
  evaluate_options.noise_runs = parsed.get<int>("runs");
  evaluate_options.samples = parsed.get<int>("samples");
  evaluate_options.device = parsed.get<int>("device");
  evaluate_options.run_deadline = noise_deadline;
  const int starts = parsed.get<int>("starts");
  std::vector<NoiseSubject> subjects;
  for (const std::string& argument : parsed.get<std::vector<std::string>>("subject")) {
    Result<NoiseSubject> subject = noise_subject(argument);
    if (!subject) return bad_input(subject.error());
    subjects.push_back(std::move(*subject));
  }

  std::filesystem::path recorded;
  NoiseRecord record;
  record.toolchain = toolchain_versions();
  {
    Progress progress;
    const GpuLock::OnWait waiting = [&](const std::string& holder) { progress.show(holder); };
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      const Candidate& candidate = subjects[i].candidate;
      const std::string& reference = subjects[i].reference;
      progress.show("[" + std::to_string(i + 1) + "/" + std::to_string(subjects.size()) + "] " +
                    candidate.problem + "/" + (reference.empty() ? candidate.name : reference) +
                    " against itself, " + std::to_string(evaluate_options.noise_runs) + " runs …");
      Result<NoiseRow> row = measure(subjects[i], evaluate_options, starts, waiting, record);
      if (!row) return bad_input(row.error());
      record.rows.push_back(std::move(*row));
      if (parsed.flag("record")) {  // what is measured stays, whatever ends the run
        Result<std::filesystem::path> path = record_noise(project_root(), record);
        if (!path) return bad_input(path.error());
        recorded = std::move(*path);
      }
    }
  }
  if (parsed.flag("json")) {
    std::cout << boost::json::serialize(to_json(record)) << "\n";
  } else {
    std::cout << to_text(noise_table(record));
  }
  if (!recorded.empty()) {
    std::cerr << "recorded in " << recorded.string() << "; `rekernel report --readme` brings "
              << "harness/TIMING.md up to date\n";
  }
  const bool holds = std::all_of(record.rows.begin(), record.rows.end(),
                                 [](const NoiseRow& row) { return summarise(row).holds(); });
  return holds ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
