#include <iostream>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/dataset/judge_rows.h"
#include "harness/gpu/choice.h"
#include "harness/project/root.h"
#include "harness/records/record.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// results/<gpu>/judged_again.jsonl of this project.
Result<fs::path> record_path(const ParsedArguments& parsed, const std::string& device_name) {
  if (parsed.has("record")) return fs::path(parsed.get<std::string>("record"));
  const Result<fs::path> root = own_project();
  if (!root) return root.error();
  return bench_path(*root, device_name).parent_path() / judged_again_file;
}

Page dataset_judge_page() {
  Page page;
  page.description =
      "Judges rows of a data set once more, drawn at random, and compares the verdicts.";
  page.takes({"directory", "DIR", "a data set"},
             text_value("DIR", {Names::folder, Names::anything}));
  page.examples = {{"rekernel dataset judge ./rekernel-dataset --rows 200"}};
  page.group("Judging").add_options()(
      "rows", whole_number<std::int64_t>(1, 1000000)->default_value(200), "how many rows to draw")(
      "seed", whole_number<std::uint64_t>(0, std::int64_t{1} << 53)->default_value(1),
      "of the draw");
  add_device_options(page.group("Judging"));
  page.group("Output").add_options()(
      "record", text_value("FILE", {Names::file}),
      "file that keeps the verdicts; results/<gpu>/judged_again.jsonl by default");
  return page;
}

}  // namespace

int dataset_judge_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, dataset_judge_page());
  if (parsed.exit_status) return *parsed.exit_status;
  JudgeRows asked;
  asked.dataset = parsed.get<std::string>("directory");
  asked.rows = parsed.get<std::int64_t>("rows");
  asked.seed = parsed.get<std::uint64_t>("seed");
  const Result<std::vector<VisibleGpu>> gpus = chosen_gpus(parsed);
  if (!gpus) return bad_input(gpus.error());
  asked.devices.clear();
  for (const VisibleGpu& gpu : *gpus) asked.devices.push_back(gpu.ordinal);
  asked.device_name = gpus->front().name;
  const Result<fs::path> record = record_path(parsed, asked.device_name);
  if (!record) return bad_input(record.error());
  asked.record = *record;
  Progress progress;
  asked.progress = [&](std::size_t done, std::int64_t total) {
    progress.step(done, static_cast<std::size_t>(total), "rows judged again");
  };
  const auto say = [&](const std::string& text) {
    progress.show("");
    std::cerr << wrapped(text, page_columns, 2) << std::endl;
  };
  const PoolEvaluatorOptions ahead = compiling_evaluator(
      Compiler::target_for_device(gpus->front().major, gpus->front().minor), gpus->size(), say);
  asked.say = say;
  if (ahead.compile) asked.compile_ahead = [&](const Candidate& one) { ahead.compile(one); };
  asked.compilations = ahead.compilations;
  LocalLauncher launcher(nullptr, [&](const std::string& holder) { progress.show(holder); });
  const Result<JudgedAgainRecord> judged = judge_rows(asked, launcher);
  progress.show("");
  if (!judged) return bad_input(judged.error());
  std::size_t same = 0;
  for (const JudgedAgain& row : judged->rows) {
    if (row.status == row.status_now) {
      ++same;
    } else {
      std::cout << row.id << ": " << row.status << ", now " << row.status_now << "\n";
    }
  }
  std::cout << same << " of " << counted(judged->rows.size(), "row") << " got the same verdict\n"
            << asked.record.string() << "\n";
  return same == judged->rows.size() ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel
