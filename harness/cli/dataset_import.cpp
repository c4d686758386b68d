#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/capture/capture.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/dataset/submissions.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/project/scratch_folder.h"
#include "harness/records/record.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

Result<Candidate> capture(const ForeignProgram& program, const std::string& problem, int device,
                          const Arch& arch) {
  const Result<ScratchFolder> scratch = ScratchFolder::make("import");
  if (!scratch) return scratch.error();
  CaptureRequest request;
  request.program = scratch->path() / "program.py";
  request.function = program.function;
  request.name = "imported";
  request.device = device;
  request.arch = arch;
  if (Result<Ok> written = write_file_atomically(request.program, program.text); !written) {
    return written.error();
  }
  if (Result<Ok> sound = check_request(request, *find_problem(problem)); !sound) {
    return sound.error();
  }
  Result<fs::path> recorder = find_recorder();
  if (!recorder) return recorder.error();
  request.recorder = *std::move(recorder);
  Result<Capture> captured = capture_program(request, *find_problem(problem));
  if (!captured) return captured.error();
  return std::move(captured->candidate);
}

/// All entries of all files, before anything is judged: what is wrong is said at once.
Result<Submissions> read_files(const ParsedArguments& parsed) {
  SubmissionOptions options;
  if (parsed.has("license")) options.license = parsed.get<std::string>("license");
  if (parsed.has("problem")) options.problem = parsed.get<std::string>("problem");
  Submissions all;
  for (const std::string& file : parsed.get<std::vector<std::string>>("file")) {
    Result<Submissions> read = read_submissions(file, options);
    if (!read) return read.error();
    std::move(read->kernels.begin(), read->kernels.end(), std::back_inserter(all.kernels));
    std::move(read->left_out.begin(), read->left_out.end(), std::back_inserter(all.left_out));
  }
  std::set<std::string> names;
  for (const Submission& one : all.kernels) {
    if (!names.insert(one.name).second)
      return Error{one.from + ": " + one.name + " stands there twice"};
  }
  return all;
}

/// Judges those that the record lacks. How many passed, or why it could not go on.
Result<std::size_t> judge_all(const Submissions& submissions, const fs::path& record,
                              SubmissionJudge& judge, Progress& progress) {
  std::set<std::string> there;
  std::error_code ignored;
  if (fs::exists(record, ignored)) {
    const Result<std::vector<ImportedKernel>> kernels = load_imported(record);
    if (!kernels) return kernels.error();
    for (const ImportedKernel& kernel : *kernels) there.insert(kernel.name);
  }
  std::size_t passed = 0;
  for (std::size_t i = 0; i < submissions.kernels.size(); ++i) {
    const Submission& one = submissions.kernels[i];
    progress.step(i, submissions.kernels.size(), one.name);
    if (there.contains(one.name)) continue;
    const Result<JudgedSubmission> judged = judge_submission(one, judge);
    if (!judged) return judged.error();
    progress.show("");
    if (!judged->kernel) {
      std::cout << one.name << ": left out: " << one_line(judged->kept_out, 400) << "\n";
      continue;
    }
    if (Result<Ok> kept = append_imported(record, *judged->kernel); !kept) return kept.error();
    std::cout << one.name << ": " << to_string(judged->kernel->evaluation.status) << std::endl;
    passed += judged->kernel->evaluation.status == Status::passed ? 1 : 0;
  }
  return passed;
}

Page dataset_import_page() {
  Page page;
  page.description =
      "Judges kernels of other collections on this machine's GPU, and records the verdicts.";
  page.takes({"file", "FILE", "KernelBench's samples, FlashInfer's solutions, a data set's folder",
              Count::some},
             list_value("FILE", {Names::file, Names::folder, Names::anything}));
  page.usage = "FILE… --license SPDX [options]";
  page.examples = {
      {"rekernel dataset import samples/level1/problem_23/sample_0/kernel.json --license MIT"}};
  page.group("Their origin")
      .add_options()("license", text_value("SPDX"),
                     "of the files' kernels, as SPDX calls it, where they do not name it")(
          "problem", text_value("PROBLEM", {Names::problem}),
          "which problem they are for, where they do not tell");
  add_device_option(page.group("Judging"));
  return page;
}

}  // namespace

int dataset_import_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, dataset_import_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<Submissions> submissions = read_files(parsed);
  if (!submissions) return bad_input(submissions.error());
  for (const LeftOutEntry& one : submissions->left_out) {
    std::cout << one.name << ": left out: " << one.why << "\n";
  }
  const Result<fs::path> root = own_project();
  if (!root) return bad_input(root.error());
  const Result<VisibleGpu> gpu = chosen_gpu(parsed);
  if (!gpu) return bad_input(gpu.error());
  const int device = gpu->ordinal;
  const std::vector<Arch> archs = archs_on({gpu->major, gpu->minor});
  if (archs.empty()) return bad_input({"this GPU is older than sm_80"});

  Progress progress;
  LocalLauncher launcher(nullptr, [&](const std::string& holder) { progress.show(holder); });
  SubmissionJudge judge{launcher,
                        [&](const ForeignProgram& program, const std::string& problem) {
                          return capture(program, problem, device, archs.back());
                        },
                        device, gpu->name, toolchain_text()};
  const fs::path record = bench_path(*root, gpu->name).parent_path() / imported_file;
  const Result<std::size_t> passed = judge_all(*submissions, record, judge, progress);
  if (!passed) return bad_input(passed.error());
  std::cout << counted(*passed, "kernel") << " passed; " << record.string() << "\n";
  return exit_good;
}

}  // namespace rekernel
