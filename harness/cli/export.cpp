#include <algorithm>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile_isolated.h"
#include "harness/export/export.h"
#include "harness/gpu/choice.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/report/judgement.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "reference/library_function.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

namespace fs = std::filesystem;

/// The targets to make machine code for: those named, or all that the compiler knows.
Result<std::vector<Arch>> chosen_targets(const Candidate& candidate, const Compiler& compiler,
                                         const std::vector<std::string>& named) {
  std::vector<Arch> result;
  const std::vector<std::string> possible = targets_of(candidate.arch);
  for (const std::string& name : named) {
    if (std::find(possible.begin(), possible.end(), name) == possible.end()) {
      return Error{"--target " + name + ": this kernel is for " + to_string(candidate.arch) +
                   "; expected one of " + joined(possible)};
    }
    if (!compiler.knows(name)) {
      return Error{"--target " + name + ": NVRTC " + compiler.version() + " does not know it"};
    }
  }
  for (const std::string& name : possible) {
    const bool wanted = named.empty() || std::find(named.begin(), named.end(), name) != named.end();
    if (wanted && compiler.knows(name)) result.push_back(*arch_from_string(name));
  }
  if (result.empty()) {
    return Error{"NVRTC " + compiler.version() + " knows none of " + joined(possible)};
  }
  return result;
}

Result<std::vector<ExportedCode>> machine_code(const Candidate& candidate,
                                               const std::vector<std::string>& named) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  const Result<std::vector<Arch>> targets = chosen_targets(candidate, *compiler, named);
  if (!targets) return targets.error();
  std::vector<ExportedCode> codes;
  Progress progress;
  for (const Arch target : *targets) {
    progress.step(codes.size(), targets->size(), "compiling");
    Result<CompileOutcome> compiled =
        compile_candidate(*compiler, candidate, to_string(target), candidate.name);
    if (!compiled) return compiled.error();
    if (!compiled->program) return Error{compiled->message};
    codes.push_back({target, std::move(compiled->program->cubin)});
  }
  return codes;
}

/// All of the files or none: they are written beside the folder, which is then named.
Result<Ok> write_folder(const fs::path& folder, const std::vector<ExportedFile>& files) {
  if (fs::exists(fs::symlink_status(folder))) {
    return Error{folder.string() + " exists already; remove it, or choose another with --into"};
  }
  const fs::path scratch = folder.string() + ".new-" + random_digits();
  std::error_code failure;
  const auto written = [&]() -> Result<Ok> {
    for (const ExportedFile& file : files) {
      fs::create_directories((scratch / file.path).parent_path(), failure);
      if (failure) return Error{scratch.string() + ": cannot be made: " + failure.message()};
      if (auto one = write_file_atomically(scratch / file.path, file.content); !one) return one;
    }
    fs::rename(scratch, folder, failure);
    if (failure) return Error{folder.string() + ": cannot be made: " + failure.message()};
    return Ok{};
  }();
  if (!written) fs::remove_all(scratch, failure);
  return written;
}

/// The GPU of this machine; empty without one.
std::string device_here() {
  const Result<std::vector<VisibleGpu>> gpus = visible_gpus();
  return gpus && !gpus->empty() ? gpus->front().name : "";
}

/// What is recorded of the candidate. An error where that is nothing, unless it may be.
Result<RecordedJudgement> judgement_for(const Candidate& candidate, const std::string& named,
                                        bool unjudged) {
  Result<RecordedJudgement> judgement =
      recorded_judgement(project_root(), candidate, device_here());
  if (!judgement || !judgement->devices.empty() || unjudged) return judgement;
  const std::string kernel = candidate.problem + "/" + candidate.name;
  return Error{named + ": nobody judged exactly this source and plan (SHA-256 " +
               candidate_sha256(candidate).substr(0, 12) + "…): put it into generated/" + kernel +
               " and run `rekernel bench " + kernel +
               " --record` on a GPU, or export it with --unjudged"};
}

int export_candidate(const ParsedArguments& parsed) {
  const std::string& to = parsed.get<std::string>("to");
  const std::string& code = parsed.get<std::string>("code");
  if (code == "nvrtc" && parsed.has("target")) {
    return bad_input({"--target is for --code cubin: NVRTC compiles for the GPU that it meets"});
  }
  const Result<Candidate> candidate = named_candidate(parsed.get<std::string>("kernel"));
  if (!candidate) return bad_input(candidate.error());
  if (const Result<Ok> checked = check_exportable(*candidate, parsed.get<std::string>("kernel"));
      !checked) {
    return bad_input(checked.error());
  }
  const Result<RecordedJudgement> judgement =
      judgement_for(*candidate, parsed.get<std::string>("kernel"), parsed.flag("unjudged"));
  if (!judgement) return bad_input(judgement.error());
  fs::path folder;
  if (parsed.has("into")) {
    folder = parsed.get<std::string>("into");
  } else {
    const Result<fs::path> root = own_project();
    if (!root) return bad_input({root.error().message + ", or --into FOLDER"});
    folder = *root / "build" / "export" / to / export_name(*candidate);
  }
  std::vector<ExportedCode> codes;
  if (code == "cubin") {
    Result<std::vector<ExportedCode>> made = machine_code(
        *candidate, parsed.has("target") ? parsed.get<std::vector<std::string>>("target")
                                         : std::vector<std::string>{});
    if (!made) return bad_input(made.error());
    codes = *std::move(made);
  }
  const Problem& problem = *find_problem(candidate->problem);
  const LibraryFunction library = library_function(problem);
  const ExportSource source{*candidate, problem, library, std::move(codes), *judgement};
  const Result<Ok> written =
      write_folder(folder, to == "cpp" ? export_to_cpp(source) : export_to_pytorch(source));
  if (!written) return bad_input(written.error());
  std::cout << folder.string() << "\n";
  return exit_good;
}

Page export_page() {
  Page page;
  page.description =
      "Makes a kernel usable elsewhere, with what is recorded of it: verdict, badges, errors, "
      "tolerance, time and device.";
  page.takes({"kernel", "KERNEL", "PROBLEM/NAME of a committed kernel, or a candidate's folder"},
             text_value("KERNEL", {Names::kernel, Names::folder}));
  page.usage = "KERNEL --to cpp|pytorch [options]";
  page.examples = {{"rekernel export softmax/cluster_with_prefetch --to pytorch"}};
  add_problem_option(page.group("Candidate"));
  page.group("Output").add_options()(
      "to", one_of({"cpp", "pytorch"}),
      "cpp: a header for any C++17 program; pytorch: a package with an operator")(
      "into", text_value("DIR", {Names::folder}),
      "folder to make; build/export/TO/PROBLEM_NAME by default")(
      "unjudged", po::bool_switch(),
      "also what nobody judged: every file of the export then says so");
  page.group("Code").add_options()(
      "code", one_of({"cubin", "nvrtc"})->default_value("cubin"),
      "cubin: machine code made here; nvrtc: the source, compiled where it runs")(
      "target", list_value("TARGET")->composing(),
      "with cubin, machine code for this architecture alone; may be repeated");
  return page;
}

}  // namespace

int export_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, export_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (!parsed.has("to")) return bad_input({"export: expected --to cpp or --to pytorch"});
  const Result<std::vector<const Problem*>> taken = take_problems(parsed);
  if (!taken) return bad_input(taken.error());
  return export_candidate(parsed);
}

}  // namespace rekernel
