#include <iostream>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/dataset.h"
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

}  // namespace

Result<std::string> gpu_name(int ordinal) {
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) return visible.error();
  for (const VisibleGpu& gpu : *visible) {
    if (gpu.ordinal == ordinal) return gpu.name;
  }
  return Error{"--device " + std::to_string(ordinal) + ": there is no such GPU here"};
}

int dataset_judge_command(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("directory", po::value<std::string>(), "a data set")(
      "rows", po::value<std::int64_t>()->default_value(200), "how many, drawn at random")(
      "seed", po::value<std::uint64_t>()->default_value(1), "of the draw")(
      "device", po::value<int>()->default_value(0), "number of the GPU, as nvidia-smi counts")(
      "record", po::value<std::string>(),
      "file that keeps the verdicts; results/<gpu>/judged_again.jsonl by default");
  po::positional_options_description positional;
  positional.add("directory", 1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel dataset judge DIR [options]",
                      "rekernel dataset judge ./rekernel-dataset --rows 200", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  if (!parsed.has("directory")) return bad_input({"dataset judge: expected a data set's folder"});
  JudgeRows asked;
  asked.dataset = parsed.get<std::string>("directory");
  asked.rows = parsed.get<std::int64_t>("rows");
  asked.seed = parsed.get<std::uint64_t>("seed");
  asked.device = parsed.get<int>("device");
  if (asked.rows < 1 || asked.rows > 1000000) return bad_input({"--rows: expected 1 to 1000000"});
  if (asked.seed > std::uint64_t{1} << 53) return bad_input({"--seed: expected at most 2^53"});
  const Result<std::string> name = gpu_name(asked.device);
  if (!name) return bad_input(name.error());
  asked.device_name = *name;
  const Result<fs::path> record = record_path(parsed, *name);
  if (!record) return bad_input(record.error());
  asked.record = *record;
  Progress progress;
  asked.progress = [&](std::size_t done, std::size_t total) {
    progress.step(done, total, "rows judged again");
  };
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
