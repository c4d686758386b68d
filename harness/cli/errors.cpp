#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>

#include "harness/audit/errors.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/evaluation/launcher.h"
#include "harness/gpu/choice.h"
#include "harness/gpu/exclusive.h"
#include "harness/gpu/identity.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/records/record.h"
#include "harness/report/filters.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"
#include "replay/evaluator/evaluation_pool.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// A mutant that hangs should not hold up the others for long.
constexpr std::chrono::seconds errors_deadline{60};
/// Samples that a verdict would time, and that are judged here: kernels that are right in the first
/// runs only, and races.

/// Verdicts without times, which other processes on the GPU do not disturb: several at a time.
class ErrorMeasurement {
 public:
  ErrorMeasurement(std::vector<ErrorSubject> subjects, int seeds, std::vector<int> devices)
      : subjects_(std::move(subjects)),
        seeds_(seeds),
        devices_(std::move(devices)),
        rows_(subjects_.size()),
        settled_(subjects_.size(), false) {}

  /// With so many processes at a time on each GPU.
  Result<ErrorsRecord> run(int jobs) {
    std::map<const Candidate*, const ErrorSubject*> subject_of;
    PoolTask task;
    for (const ErrorSubject& subject : subjects_) {
      task.candidates.push_back(&subject.candidate);
      task.ids.push_back(subject.candidate.problem + "/" + subject.name);
      subject_of[&subject.candidate] = &subject;
    }
    task.prepare = [](std::size_t) { return std::nullopt; };
    task.settle = [this](std::size_t i, const EvaluationReport& report) {
      settle(i, report);
      return true;
    };
    std::vector<PoolWorker> workers;
    for (int i = 0; i < jobs; ++i) {
      for (const int device : devices_) {
        workers.push_back({"GPU " + std::to_string(device), [&, device](const Candidate& one) {
                             return measured(*subject_of.at(&one), device);
                           }});
      }
    }
    std::vector<std::size_t> unsettled;
    // What it says of its end is said of each subject below.
    (void)EvaluationPool(std::move(workers), {}).run(task, unsettled);
    // What failed for lack of memory beside others may work alone.
    for (std::size_t i = 0; i < subjects_.size(); ++i) {
      if (settled_[i]) continue;
      const EvaluationReport report = measured(subjects_[i], devices_.front());
      if (!report.failure.empty()) return Error{task.ids[i] + ": " + report.failure};
      settle(i, report);
    }
    record_.toolchain = toolchain_versions();
    for (std::vector<ErrorRow>& rows : rows_) {
      std::move(rows.begin(), rows.end(), std::back_inserter(record_.rows));
    }
    return std::move(record_);
  }

 private:
  EvaluationReport measured(const ErrorSubject& subject, int device) {
    show(subject);
    EvaluateOptions options;
    options.device = device;
    options.mode = EvaluateOptions::Mode::errors;
    options.samples = seeds_;
    options.run_deadline = errors_deadline;
    // The libraries' errors are measured once, beside the definition.
    if (subject.source == ErrorSource::scaffold) {
      options.references = library_reference_ids(subject.candidate.problem);
    }
    return launcher_.evaluate(subject.candidate, options);
  }

  /// Never called twice at a time.
  void settle(std::size_t i, const EvaluationReport& report) {
    const ErrorSubject& subject = subjects_[i];
    settled_[i] = true;
    rows_[i] = error_rows(subject, report.evaluation);
    for (ErrorRow& row : rows_[i]) row.measured = today();
    if (!report.device) return;
    if (!runs_on(subject.candidate.arch, report.device->major, report.device->minor)) {
      rows_[i].front().status.clear();  // the message says why nothing was judged
    }
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
  const std::vector<int> devices_;
  std::vector<std::vector<ErrorRow>> rows_;
  std::vector<bool> settled_;
  ErrorsRecord record_;
  LocalLauncher launcher_;
  std::mutex mutex_;  ///< of what follows
  std::size_t shown_ = 0;
  Progress progress_;
};

/// The published problems, or those that the filters name.
std::vector<const Problem*> chosen_problems(const Filters& filters) {
  const bool named = !filters.problems.empty() || !filters.groups.empty();
  std::vector<const Problem*> problems;
  for (const Problem& problem : named ? catalog() : published_problems()) {
    if (filters.take(problem)) problems.push_back(&problem);
  }
  return problems;
}

/// What is measured: all or the named implementations of the problems.
Result<std::vector<ErrorSubject>> chosen_subjects(const std::filesystem::path& root,
                                                  const std::vector<const Problem*>& problems,
                                                  const Filters& filters) {
  std::vector<ErrorSubject> subjects;
  for (const Problem* problem : problems) {
    Result<std::vector<ErrorSubject>> found = error_subjects(root, *problem);
    if (!found) return found;
    for (ErrorSubject& subject : *found) {
      if (filters.take_kernel(problem->id, subject.name)) subjects.push_back(std::move(subject));
    }
  }
  if (subjects.empty()) return Error{"nothing to measure fits these filters"};
  return subjects;
}

/// The rows of one problem that are shown; libraries have neither status nor badges.
Table shown_table(const ErrorsRecord& record, const Problem& problem, const Filters& filters) {
  ErrorsRecord shown = record;
  std::erase_if(shown.rows, [&](const ErrorRow& row) {
    const bool by_outcome = !filters.statuses.empty() || !filters.badges.empty();
    const std::optional<Status> status = status_from_string(row.status);
    return by_outcome && !(status && filters.take_outcome(*status, row.badges));
  });
  return error_table(shown, problem);
}

/// What was measured before stays, and is judged again with the rest.
Result<ErrorsRecord> measure_missing(const std::filesystem::path& root,
                                     const std::vector<ErrorSubject>& subjects, int seeds,
                                     const std::vector<int>& devices, int jobs) {
  const Result<std::vector<VisibleGpu>> gpus = visible_gpus();
  if (!gpus) return gpus.error();
  const auto gpu = std::find_if(gpus->begin(), gpus->end(),
                                [&](const auto& one) { return one.ordinal == devices.front(); });
  if (gpu == gpus->end()) return Error{"GPU " + std::to_string(devices.front()) + " is gone"};
  ErrorsRecord old;
  if (const auto path = errors_path(root, gpu->name); std::filesystem::exists(path)) {
    Result<ErrorsRecord> loaded = load_errors(path);
    if (!loaded) return loaded.error();
    old = std::move(*loaded);
  }
  std::vector<ErrorSubject> missing = without_rows(subjects, old);
  if (missing.empty()) return old;
  Result<ErrorsRecord> measured = ErrorMeasurement(std::move(missing), seeds, devices).run(jobs);
  if (!measured) return measured.error();
  return completed(*measured, old, subjects);
}

/// The scaffold and committed kernels must pass. Mutants and honest kernels say themselves what
/// they must get.
bool is_as_it_must(const ErrorRow& row) {
  const bool must_pass =
      row.source == ErrorSource::scaffold || row.source == ErrorSource::committed;
  return !must_pass || row.status.empty() || row.status == to_string(Status::passed);
}

Page errors_page() {
  Page page;
  page.description =
      "Measures the errors of definitions, libraries, committed kernels, honest kernels and "
      "mutants "
      "against the float64 truth, and whether each gets the verdict that it must get. "
      "ops/TOLERANCES.md and tests/mutants/README.md are made of the record.";
  page.takes({"problem", "PROBLEM|KERNEL",
              "problems with all that is measured of them, or kernels "
              "alone; the published problems by default",
              Count::any},
             list_value("NAME", {Names::problem, Names::kernel, Names::folder}));
  page.examples = {{"rekernel errors matmul_fp32 conv2d --record"},
                   {"rekernel errors softmax/cluster_with_prefetch"}};
  page.group("Measuring")
      .add_options()("seeds", whole_number(1, 100)->default_value(8), "inputs for each")(
          "jobs", whole_number(1, 64)->default_value(6), "processes at a time on a GPU")(
          "missing", po::bool_switch(),
          "measure only what results/<gpu>/errors.json has no row of; the other rows stay");
  add_device_options(page.group("Measuring"));
  page.group("Output").add_options()("record", po::bool_switch(),
                                     "replace these problems' rows in results/<gpu>/errors.json")(
      "json", po::bool_switch(), "print the record as JSON");
  add_wide_option(page.group("Output"));
  add_kernel_filters(page.group("Which of them"));
  page.statuses[1] = "a kernel or a mutant got another verdict than it must get";
  return page;
}

}  // namespace

int errors_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, errors_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }
  const int seeds = parsed.get<int>("seeds");
  const int jobs = parsed.get<int>("jobs");
  const Result<Filters> filters = chosen_filters(parsed);
  if (!filters) return bad_input(filters.error());
  if (!filters->kernels.empty() && parsed.flag("record")) {
    return bad_input({"--record replaces all rows of a problem: expected no --kernel with it"});
  }
  const std::vector<const Problem*> problems = chosen_problems(*filters);
  const std::filesystem::path root = project_root();
  const Result<std::vector<ErrorSubject>> chosen = chosen_subjects(root, problems, *filters);
  if (!chosen) return bad_input(chosen.error());
  const std::vector<ErrorSubject>& subjects = *chosen;
  const Result<std::vector<int>> devices = chosen_devices(parsed);
  if (!devices) return bad_input(devices.error());

  // All of these share the GPUs with each other, and with nobody whose times count.
  std::vector<GpuLock> locks;
  for (const int device : *devices) {
    const Result<GpuIdentity> gpu = identify_gpu(device);
    if (!gpu) return bad_input(gpu.error());
    Result<GpuLock> lock =
        GpuLock::acquire(gpu->uuid, std::nullopt, [&](const std::string& holder) {
          std::cerr << "GPU " << device << " is taken by " << holder << ": waiting for it …\n";
        });
    if (!lock) return bad_input(lock.error());
    locks.push_back(std::move(*lock));
  }
  Result<ErrorsRecord> record = parsed.flag("missing")
                                    ? measure_missing(root, subjects, seeds, *devices, jobs)
                                    : ErrorMeasurement(subjects, seeds, *devices).run(jobs);
  if (!record) return bad_input(record.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*record));
  } else {
    const TableFormat format = table_format(parsed);
    for (const Problem* problem : problems) {
      std::cout << problem->id << "\n"
                << format.shown(shown_table(*record, *problem, *filters)) << "\n";
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
