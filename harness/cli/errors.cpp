#include "harness/audit/errors.h"

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

#include "harness/audit/mutants_page.h"
#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/references.h"
#include "harness/evaluation/launcher.h"
#include "harness/gpu/exclusive.h"
#include "harness/records/record.h"
#include "ops/catalog.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// A mutant that hangs should not hold up the others for long.
constexpr std::chrono::seconds errors_deadline{60};
/// Samples that a verdict would time, and that are judged here: kernels that are right in the first
/// runs only, and races.
constexpr int judged_samples = 3;

/// Verdicts without times, which do not mind company on the GPU: several processes at a time.
class ErrorMeasurement {
 public:
  ErrorMeasurement(std::vector<ErrorSubject> subjects, int seeds, int device)
      : subjects_(std::move(subjects)),
        seeds_(seeds),
        device_(device),
        rows_(subjects_.size()),
        failures_(subjects_.size()) {}

  Result<ErrorsRecord> run(int jobs) {
    {
      // A thread waits for its child: children die with the thread that started them.
      std::vector<std::jthread> workers;
      for (int i = 0; i < jobs; ++i) workers.emplace_back([this] { work(); });
    }
    // What failed for want of memory in company may do alone.
    for (std::size_t i = 0; i < subjects_.size(); ++i) {
      if (!failures_[i].empty()) try_to_measure(i);
    }
    for (const std::string& failure : failures_) {
      if (!failure.empty()) return Error{failure};
    }
    record_.measured = today();
    record_.toolchain = toolchain_versions();
    for (std::vector<ErrorRow>& rows : rows_) {
      std::move(rows.begin(), rows.end(), std::back_inserter(record_.rows));
    }
    return std::move(record_);
  }

 private:
  void work() {
    for (std::size_t i; (i = next_++) < subjects_.size();) try_to_measure(i);
  }

  void try_to_measure(std::size_t i) {
    failures_[i].clear();
    try {
      measure(i);
    } catch (const std::exception& error) {
      failures_[i] = error.what();
    }
  }

  void measure(std::size_t i) {
    const ErrorSubject& subject = subjects_[i];
    show(subject);
    EvaluateOptions options;
    options.device = device_;
    options.mode = EvaluateOptions::Mode::errors;
    options.check_seeds = seeds_;
    options.samples = judged_samples;
    options.run_deadline = errors_deadline;
    // The libraries' errors are measured once, beside the definition.
    if (subject.source == ErrorSource::scaffold) {
      options.references = library_reference_ids(subject.candidate.problem);
    }
    const EvaluationReport report = LocalLauncher().evaluate(subject.candidate, options);
    if (!report.failure.empty()) {
      failures_[i] = subject.candidate.problem + "/" + subject.name + ": " + report.failure;
      return;
    }
    rows_[i] = error_rows(subject, report.evaluation);
    if (!report.device) return;
    if (!runs_on(subject.candidate.arch, report.device->major, report.device->minor)) {
      rows_[i].front().status.clear();  // the message says why nothing was judged
    }
    const std::lock_guard lock(mutex_);
    record_.device_name = report.device->name;
  }

  void show(const ErrorSubject& subject) {
    const std::lock_guard lock(mutex_);
    shown_ = std::min(shown_ + 1, subjects_.size());
    progress_.show("[" + std::to_string(shown_) + "/" + std::to_string(subjects_.size()) + "] " +
                   subject.candidate.problem + "/" + subject.name + " …");
  }

  const std::vector<ErrorSubject> subjects_;
  const int seeds_;
  const int device_;
  std::vector<std::vector<ErrorRow>> rows_;
  std::vector<std::string> failures_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  ///< of what follows
  std::size_t shown_ = 0;
  Progress progress_;
  ErrorsRecord record_;
};

Result<std::vector<const Problem*>> chosen_problems(const ParsedArguments& parsed) {
  std::vector<const Problem*> problems;
  if (!parsed.has("problem")) {
    for (const Problem& problem : catalog()) problems.push_back(&problem);
    return problems;
  }
  for (const std::string& id : parsed.get<std::vector<std::string>>("problem")) {
    const Problem* problem = find_problem(id);
    if (!problem) return Error{"unknown problem '" + id + "'; `rekernel list` names them"};
    problems.push_back(problem);
  }
  return problems;
}

/// The scaffold and committed kernels must pass. Mutants and honest kernels say themselves what
/// they must get.
bool is_as_it_must(const ErrorRow& row) {
  const bool must_pass =
      row.source == ErrorSource::scaffold || row.source == ErrorSource::committed;
  return !must_pass || row.status.empty() || row.status == to_string(Status::passed);
}

}  // namespace

int errors_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("problem", po::value<std::vector<std::string>>(),
                        "problems to measure; all by default")(
      "seeds", po::value<int>()->default_value(5), "inputs for each, 1 to 100")(
      "jobs", po::value<int>()->default_value(6), "processes at a time, 1 to 64")(
      "device", po::value<int>()->default_value(0), "number of the GPU")(
      "record", po::bool_switch(), "replace these problems' rows in results/<gpu>/errors.json")(
      "json", po::bool_switch(), "print the record as JSON");
  po::positional_options_description positional;
  positional.add("problem", -1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel errors [PROBLEM…] [options]",
                      "rekernel errors matmul_fp32 conv2d --record", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  const int seeds = parsed.get<int>("seeds");
  const int jobs = parsed.get<int>("jobs");
  if (seeds < 1 || seeds > 100) return bad_input({"--seeds: expected 1 to 100"});
  if (jobs < 1 || jobs > 64) return bad_input({"--jobs: expected 1 to 64"});
  Result<std::vector<const Problem*>> problems = chosen_problems(parsed);
  if (!problems) return bad_input(problems.error());

  const std::filesystem::path root = project_root();
  std::vector<ErrorSubject> subjects;
  for (const Problem* problem : *problems) {
    Result<std::vector<ErrorSubject>> found = error_subjects(root, *problem);
    if (!found) return bad_input(found.error());
    std::move(found->begin(), found->end(), std::back_inserter(subjects));
  }
  if (Result<int> devices = device_count(); !devices) return bad_input(devices.error());

  const int device = parsed.get<int>("device");
  const Result<std::string> uuid = device_uuid(device);
  if (!uuid) return bad_input(uuid.error());
  // All of these share the GPU with each other, and with nobody whose times count.
  const Result<GpuLock> lock = GpuLock::acquire(*uuid, std::nullopt, [](const std::string& holder) {
    std::cerr << "the GPU is taken by " << holder << ": waiting for it …\n";
  });
  if (!lock) return bad_input(lock.error());
  Result<ErrorsRecord> record = ErrorMeasurement(std::move(subjects), seeds, device).run(jobs);
  if (!record) return bad_input(record.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*record));
  } else {
    for (const Problem* problem : *problems) {
      std::cout << problem->id << "\n" << to_text(error_table(*record, *problem)) << "\n";
    }
  }
  if (parsed.flag("record")) {
    Result<std::filesystem::path> path = record_errors(root, *record);
    if (!path) return bad_input(path.error());
    std::cerr << "recorded in " << path->string() << "; `rekernel report --readme` brings "
              << "ops/TOLERANCES.md and tests/mutants/README.md up to date\n";
  }
  const std::string wrong = wrong_outcomes(judge_outcomes(root, *record));
  std::cerr << wrong;
  const bool good =
      wrong.empty() && std::all_of(record->rows.begin(), record->rows.end(), is_as_it_must);
  return good ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
