#include <boost/json.hpp>
#include <cctype>
#include <iostream>

#include "harness/base/text.h"
#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/candidate/library_kernels.h"
#include "harness/capture/capture.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/evaluation/launcher.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/report.h"
#include "harness/report/evaluation_text.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// "my-softmax.py" names a candidate my_softmax.
std::string name_from(const fs::path& program) {
  std::string name;
  for (const char c : program.stem().string().substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return name;
}

/// What the program says of its own time, in a line.
std::string program_text(const Capture& capture) {
  const std::string who = "  the program's own word, " + capture.entry +
                          (capture.torch.empty() ? "" : " under PyTorch " + capture.torch) + ": ";
  if (capture.device_ns.empty()) return who + "no time (it marked too few calls)\n";
  return who + milliseconds(capture.median_call_ns()) + " ms a call, " +
         milliseconds(capture.median_device_ns()) + " ms of it on the device\n";
}

std::string made_text(const Candidate& candidate, const fs::path& folder) {
  std::string text = "made " + folder.string() + ": " +
                     counted(candidate.program.steps.size(), "step") + ", " +
                     counted(code_of(candidate.program).size(), "module");
  const std::vector<std::string> libraries = libraries_of(candidate.program);
  if (!libraries.empty()) text += ", kernels of " + joined(libraries);
  return text + "\n  " + candidate.origin.note + "\n";
}

Page capture_page() {
  Page page;
  page.usage = "[PROBLEM] [options] -- PROGRAM [arguments]";
  page.description =
      "Runs a Python program on the problem's inputs, or a CUDA program that marks its work, "
      "records what it launches on the GPU, makes a candidate of it, and judges and times that. "
      "harness/CAPTURE.md says what can be captured.";
  page.takes({"of", "PROBLEM", "what the program solves; left out with --problem FILE", Count::one},
             text_value("PROBLEM", {Names::problem}));
  page.takes(
      {"program", "PROGRAM",
       "a Python program (KernelBench's ModelNew, GPU MODE's custom_kernel, or a function of "
       "the problem's inputs), or an executable that marks its work, with its arguments",
       Count::any},
      list_value("PROGRAM", {Names::file}));
  page.examples = {
      {"rekernel capture softmax -- tests/capture/honest/eager_softmax.py"},
      {"rekernel capture softmax --no-evaluate -- tests/capture/honest/compile_softmax.py"},
  };
  add_problem_option(page.group("Candidate"));
  page.group("Candidate")
      .add_options()("function", text_value("NAME"),
                     "which function, where the program has several")(
          "name", text_value("NAME"), "name of the candidate; the program's by default")(
          "compiled", text_value("DIR", {Names::folder}),
          "folder of what PyTorch and Triton compiled for the program before; they may write "
          "there")("into", text_value("DIR", {Names::folder})->default_value("."),
                   "folder to make the candidate's in")("no-evaluate", po::bool_switch(),
                                                        "make the candidate and do not judge it");
  page.group("Measuring")
      .add_options()("device", po::value<int>()->value_name("N")->default_value(0),
                     "number of the GPU, as nvidia-smi counts")(
          "deadline", whole_number(1, 86400, "seconds")->default_value(300),
          "time that the program may take")("samples", whole_number(10, 10000)->default_value(30),
                                            "timed samples, the program's and ours");
  page.group("Output").add_options()("json", po::bool_switch(), "print the whole record as JSON");
  page.statuses[1] = "the candidate did not pass";
  return page;
}

}  // namespace

int capture_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, capture_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  std::vector<std::string> words;
  if (parsed.has("program")) words = parsed.get<std::vector<std::string>>("program");
  // With --problem FILE, all words are the program's.
  const bool is_given = taken->size() == 1;
  if (is_given && parsed.has("of")) words.insert(words.begin(), parsed.get<std::string>("of"));
  if (words.empty()) return bad_input({"capture: expected PROGRAM; see rekernel help capture"});
  const Result<const Problem*> known =
      is_given ? taken->front() : asked_problem(parsed, "of", *taken);
  if (!known) return bad_input(known.error());
  const Problem* problem = *known;
  CaptureRequest request;
  request.program = words.front();
  request.arguments.assign(words.begin() + 1, words.end());
  if (parsed.has("function")) request.function = parsed.get<std::string>("function");
  if (parsed.has("compiled")) {
    request.compiled = fs::absolute(parsed.get<std::string>("compiled"));
    std::error_code status;
    if (!fs::is_directory(request.compiled, status)) {
      return bad_input({"--compiled " + request.compiled.string() + ": not a folder"});
    }
  }
  request.name = parsed.has("name") ? parsed.get<std::string>("name") : name_from(request.program);
  request.device = parsed.get<int>("device");
  request.samples = parsed.get<int>("samples");
  request.deadline = std::chrono::seconds(parsed.get<int>("deadline"));
  const fs::path folder = fs::path(parsed.get<std::string>("into")) / request.name;
  if (fs::exists(folder)) {
    return bad_input({folder.string() + " exists already; choose another --name"});
  }
  if (Result<Ok> possible = check_can_be_made(folder); !possible) {
    return bad_input({"--into: " + possible.error().message});
  }
  if (Result<Ok> sound = check_request(request, *problem); !sound) return bad_input(sound.error());
  Result<fs::path> recorder = find_recorder();
  if (!recorder) return bad_input(recorder.error());
  request.recorder = *std::move(recorder);
  const Result<Arch> arch = newest_arch_on(request.device);
  if (!arch) return bad_input(arch.error());
  request.arch = *arch;

  Progress progress;
  progress.show("capturing " + request.program.string() + " …");
  request.waiting = [&](const std::string& holder) {
    progress.show("the GPU is taken by " + holder + ": waiting for it …");
  };
  const Result<Capture> capture = capture_program(request, *problem);
  progress.show("");
  if (!capture) return bad_input(capture.error());
  if (Result<Ok> written = write_candidate(folder, capture->candidate); !written) {
    return bad_input(written.error());
  }
  const bool as_json = parsed.flag("json");
  boost::json::object record = {
      {"folder", folder.string()},
      {"note", capture->candidate.origin.note},
      {"libraries", boost::json::value_from(libraries_of(capture->candidate.program))},
      {"program",
       {{"entry", capture->entry},
        {"torch", capture->torch},
        {"call_ns", capture->median_call_ns()},
        {"device_ns", capture->median_device_ns()}}}};
  if (!as_json) std::cout << made_text(capture->candidate, folder) << std::flush;
  int status = exit_good;
  if (!parsed.flag("no-evaluate")) {
    EvaluateOptions evaluate_options;
    evaluate_options.samples = request.samples;
    evaluate_options.device = request.device;
    evaluate_options.references = headline_reference_ids(problem->id);
    LocalLauncher launcher(nullptr, [&](const std::string& holder) { progress.show(holder); });
    progress.show("evaluating …");
    const EvaluationReport report = launcher.evaluate(capture->candidate, evaluate_options);
    progress.show("");
    if (!report.failure.empty()) return bad_input({report.failure});
    if (as_json) {
      record["evaluation"] = to_json(report.evaluation);
    } else {
      std::cout << evaluation_text(report.evaluation);
    }
    if (report.evaluation.status != Status::passed) status = exit_verdict_failed;
  }
  if (as_json) {
    std::cout << pretty_json(record);
  } else {
    std::cout << program_text(*capture);
  }
  return status;
}

}  // namespace rekernel
