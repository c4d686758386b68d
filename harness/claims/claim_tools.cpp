#include "harness/claims/claim_tools.h"

#include <boost/json.hpp>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "harness/process/sandbox.h"
#include "harness/process/tool.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// What programs include, so that no source tree is needed beside this program.
constexpr char marks_header[] =
#include "rekernel_marks.inc"
    ;

constexpr std::int64_t max_built_bytes = std::int64_t{1} << 30;

std::map<std::string, std::string> words_of(const Claim& claim, const ClaimToolsOptions& options,
                                            const fs::path& source, const fs::path& folder) {
  std::map<std::string, std::string> words = {
      {"source", source.string()},
      {"program", (folder / claim.name).string()},
      {"sources", fs::absolute(options.sources).lexically_normal().string()},
      {"claims", options.claims_folder.string()},
      {"marks", (folder / "marks").string()}};
  for (const auto& [axis, size] : claim.axes) words[axis] = std::to_string(size);
  return words;
}

/// The first line of a compiler's log that is about an error, else the last one.
std::string reason_in(const fs::path& log) {
  const Result<std::string> text = read_file(log);
  if (!text) return "it wrote no log";
  std::istringstream lines(*text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos || line.find("undefined") != std::string::npos) {
      return one_line(line, 300);
    }
    if (!line.empty()) last = line;
  }
  return one_line(last, 300);
}

/// In the sandbox, without a GPU, with `folder` to write in.
Result<ChildOutcome> run_compiler(const ClaimToolsOptions& options,
                                  const std::vector<std::string>& command,
                                  const std::map<std::string, std::string>& words,
                                  const fs::path& folder, std::vector<std::string> variables) {
  if (const Result<std::string> found = sandbox(); !found && !sandbox_is_refused()) {
    return Error{"strangers' programs are built in the sandbox alone, and there is none: " +
                 found.error().message +
                 "; REKERNEL_SANDBOX=off in the environment builds them with all of your rights"};
  }
  ChildCommand child;
  // What the compiler says goes into a file: the line with the reason is rarely the last one.
  child.arguments = {
      "/usr/bin/env", "-C", folder.string(), "/bin/sh", "-c", "exec \"$@\" > build.log 2>&1", "sh"};
  child.arguments.insert(child.arguments.end(), command.begin(), command.end());
  child.deadline = options.compile_deadline;
  child.exit_deadline = options.compile_deadline;
  child.limits.processor_time = 4 * options.compile_deadline;
  child.limits.file_bytes = max_built_bytes;
  child.limits.open_files = 4096;
  SandboxAdditions additions;
  additions.tools = true;
  additions.readable = {words.at("sources"), words.at("claims")};
  additions.writable = {folder.string()};
  additions.variables = std::move(variables);
  additions.variables.push_back("TMPDIR=" + folder.string());
  additions.variables.push_back("HOME=" + folder.string());
  return run_sandboxed(std::move(child), SandboxDevices::none, additions);
}

/// Loads a Python program once, so that what it compiles is there when it is captured.
constexpr char load_program[] = R"(import importlib.util, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
specification = importlib.util.spec_from_file_location("captured_program", sys.argv[1])
specification.loader.exec_module(importlib.util.module_from_spec(specification))
)";

fs::path extensions_of(const fs::path& folder) { return folder / "extensions"; }

void prepare(const ClaimToolsOptions& options, const Claim& claim, const fs::path& program,
             const fs::path& folder) {
  std::error_code ignored;
  fs::create_directories(extensions_of(folder), ignored);
  static_cast<void>(run_compiler(
      options, {"python3", "-c", load_program, program.string()},
      words_of(claim, options, program, folder), folder,
      {"TORCH_EXTENSIONS_DIR=" + extensions_of(folder).string(),
       "TORCH_CUDA_ARCH_LIST=" + options.extension_archs, "PYTHONDONTWRITEBYTECODE=1"}));
}

Result<fs::path> built(const ClaimToolsOptions& options, const Claim& claim, const fs::path& source,
                       const fs::path& folder) {
  const auto words = words_of(claim, options, source, folder);
  Result<std::vector<std::string>> command = filled_command(claim.compile, words);
  if (!command) return Error{"compile: " + command.error().message};
  std::error_code status;
  fs::create_directories(folder / "marks", status);
  if (Result<Ok> written =
          write_file_atomically(folder / "marks" / "rekernel_marks.h", marks_header);
      !written) {
    return written.error();
  }
  const Result<ChildOutcome> outcome = run_compiler(options, *command, words, folder, {});
  if (!outcome) return outcome.error();
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    const std::string what = outcome->end == ChildOutcome::End::deadline
                                 ? "was not done in time"
                                 : "failed with status " + std::to_string(outcome->code);
    return Error{command->front() + " " + what + ": " + reason_in(folder / "build.log")};
  }
  const fs::path program = words.at("program");
  if (!fs::is_regular_file(program, status)) {
    return Error{command->front() + " made no program (-o {program})"};
  }
  return program;
}

/// This program in a project's folder, for what it prints.
Result<json::value> own_answer(const fs::path& project, const std::vector<std::string>& words,
                               std::chrono::seconds deadline) {
  ToolCommand tool;
  tool.arguments = {"/usr/bin/env", "-C", project.string(), own_executable()};
  tool.arguments.insert(tool.arguments.end(), words.begin(), words.end());
  tool.deadline = deadline;
  const Result<ToolOutcome> outcome = run_tool(tool);
  if (!outcome) return outcome.error();
  constexpr int verdict_failed = 1;
  if (!outcome->good() && outcome->exit_status != verdict_failed) {
    return Error{outcome->late ? "was not done in time" : outcome->last_words};
  }
  return parse_json(outcome->output, words.front());
}

struct Captured {
  std::string folder;
  std::string note;
  std::int64_t call_ns = 0;
  std::int64_t device_ns = 0;
};

Result<Captured> captured(const ClaimToolsOptions& options, const Claim& claim,
                          const std::string& problem, const fs::path& program,
                          const fs::path& folder, int device) {
  Result<std::vector<std::string>> given =
      filled_command(claim.arguments, words_of(claim, options, program, folder));
  if (!given) return Error{"arguments: " + given.error().message};
  const fs::path into = folder / "captured";
  std::error_code ignored;
  fs::remove_all(into, ignored);
  fs::create_directories(into, ignored);
  std::vector<std::string> words = {"capture",    problem,
                                    "--json",     "--no-evaluate",
                                    "--into",     into.string(),
                                    "--name",     claim.name,
                                    "--device",   std::to_string(device),
                                    "--deadline", std::to_string(options.capture_deadline.count())};
  if (std::error_code none; fs::is_directory(extensions_of(folder), none)) {
    words.insert(words.end(), {"--extensions", extensions_of(folder).string()});
  }
  if (!claim.function.empty()) words.insert(words.end(), {"--function", claim.function});
  words.insert(words.end(), {"--", program.string()});
  words.insert(words.end(), given->begin(), given->end());
  constexpr std::chrono::seconds grace{60};
  const Result<json::value> answer =
      own_answer(folder / "project", words, options.capture_deadline + grace);
  if (!answer) return answer.error();
  JsonReader reader("capture", *answer);
  Captured result;
  result.folder = reader.required("folder").string();
  result.note = reader.required("note").string();
  JsonReader own = reader.required("program");
  result.call_ns = own.required("call_ns").integer(0, std::int64_t{1} << 50);
  result.device_ns = own.required("device_ns").integer(0, std::int64_t{1} << 50);
  if (auto error = reader.error()) return *error;
  return result;
}

Result<Evaluation> evaluated(const ClaimToolsOptions& options, const std::string& candidate,
                             const fs::path& project, int device) {
  std::vector<std::string> words = {"evaluate",
                                    candidate,
                                    "--json",
                                    "--reference",
                                    "all",
                                    "--samples",
                                    std::to_string(options.samples),
                                    "--device",
                                    std::to_string(device)};
  if (options.pytorch) words.emplace_back("--pytorch");
  const Result<json::value> answer = own_answer(project, words, options.evaluate_deadline);
  if (!answer) return answer.error();
  return evaluation_from_json(JsonReader("evaluate", *answer));
}

void judge(const ClaimToolsOptions& options, const Claim& claim, const fs::path& program,
           const fs::path& folder, int device, ClaimRow& row) {
  const auto failed = [&](ClaimOutcome outcome, const Error& error) {
    row.outcome = outcome;
    row.reason = error.message;
  };
  const Result<std::string> problem =
      write_problem(claim, options.claims_folder, folder / "project");
  if (!problem) return failed(ClaimOutcome::not_evaluated, problem.error());
  const Result<Captured> capture = captured(options, claim, *problem, program, folder, device);
  if (!capture) return failed(ClaimOutcome::not_captured, capture.error());
  row.own_call_ns = capture->call_ns;
  row.own_device_ns = capture->device_ns;
  row.note = one_line(capture->note, 1000);
  const Result<Evaluation> evaluation =
      evaluated(options, capture->folder, folder / "project", device);
  if (!evaluation) return failed(ClaimOutcome::not_evaluated, evaluation.error());
  take_evaluation(*evaluation, row);
}

}  // namespace

Result<std::vector<std::string>> filled_command(const std::vector<std::string>& command,
                                                const std::map<std::string, std::string>& words) {
  std::vector<std::string> filled;
  for (const std::string& word : command) {
    std::string text;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = word[at] == '{' ? word.find('}', at) : std::string::npos;
      if (end == std::string::npos) {
        text += word[at++];
        continue;
      }
      const auto known = words.find(word.substr(at + 1, end - at - 1));
      if (known == words.end()) {
        return Error{"unknown placeholder " + one_line(word.substr(at, end - at + 1), 64)};
      }
      text += known->second;
      at = end + 1;
    }
    filled.push_back(std::move(text));
  }
  return filled;
}

Result<std::string> write_problem(const Claim& claim, const fs::path& claims_folder,
                                  const fs::path& project) {
  const bool own_file = claim.problem.ends_with(".json");
  std::string id = claim.problem;
  std::string group = "claims";
  std::string text;
  if (own_file) {
    const Result<std::string> read = read_file(claims_folder / claim.problem);
    if (!read) return Error{"problem: " + read.error().message};
    id = fs::path(claim.problem).stem().string();
    text = *read;
  } else {
    const Problem* problem = find_problem(id);
    if (!problem) return Error{"problem: " + unknown_problem(id).message};
    group = problem->group;
    text = problem->text;
  }
  Result<json::value> value = parse_json(text, claim.problem);
  if (!value) return value.error();
  json::object* object = value->if_object();
  json::value* axes = object ? object->if_contains("axes") : nullptr;
  if (!axes || !axes->is_object()) return Error{claim.problem + ": has no axes"};
  for (const auto& [axis, size] : claim.axes) {
    json::value* known = axes->get_object().if_contains(axis);
    if (!known) return Error{claim.problem + ": has no axis \"" + axis + "\""};
    *known = size;
  }
  const std::string changed = pretty_json(*value);
  if (const Result<Problem> sound = parse_problem(changed, claim.problem, id, group); !sound) {
    return sound.error();
  }
  std::error_code status;
  for (const fs::path& folder :
       {project / "ops" / "problems" / group, project / "generated", project / "results"}) {
    fs::create_directories(folder, status);
    if (status) return Error{folder.string() + ": " + status.message()};
  }
  // The judge measures the ceiling by a product, which is one of the published problems.
  for (const Problem& published : published_problems()) {
    if (published.id == id) continue;
    const fs::path folder = project / "ops" / "problems" / published.group;
    fs::create_directories(folder, status);
    if (auto kept = write_file_atomically(folder / (published.id + ".json"), published.text);
        !kept) {
      return kept.error();
    }
  }
  const fs::path file = project / "ops" / "problems" / group / (id + ".json");
  if (Result<Ok> written = write_file_atomically(file, changed); !written) return written.error();
  return id;
}

ClaimTools claim_tools(const ClaimToolsOptions& options) {
  ClaimTools tools;
  tools.build = [options](const Claim& claim, const fs::path& source, const fs::path& folder) {
    return built(options, claim, source, folder);
  };
  if (!options.extension_archs.empty()) {
    tools.prepare = [options](const Claim& claim, const fs::path& program, const fs::path& folder) {
      prepare(options, claim, program, folder);
    };
  }
  tools.judge = [options](const Claim& claim, const fs::path& program, const fs::path& folder,
                          int device,
                          ClaimRow& row) { judge(options, claim, program, folder, device, row); };
  return tools;
}

}  // namespace rekernel
