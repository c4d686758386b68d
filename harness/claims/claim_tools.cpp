#include "harness/claims/claim_tools.h"

#include <boost/json.hpp>
#include <memory>
#include <sstream>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/claims/claim_judge.h"
#include "harness/problem_import/imported_problem.h"
#include "harness/problems/catalog.h"
#include "harness/process/sandbox.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// What programs include, so that no source tree is needed beside this program.
constexpr char marks_header[] =
#include "rekernel_marks.inc"
    ;

constexpr std::int64_t max_built_bytes = std::int64_t{1} << 30;

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
  // What the compiler says goes into a file: the line with the reason is rarely the last one. It is
  // nice to those who are timed meanwhile: short work waits for the host.
  child.arguments = {"/usr/bin/env",
                     "-C",
                     folder.string(),
                     "/bin/sh",
                     "-c",
                     "exec nice -n 19 \"$@\" > build.log 2>&1",
                     "sh"};
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

Result<Ok> prepare(const ClaimToolsOptions& options, const Claim& claim, const fs::path& program,
                   const fs::path& folder) {
  // A program that is the problem is imported here, where nobody waits for a GPU.
  const auto problem = claimed_problem(claim, options.claims_folder, options.sources);
  if (!problem) return problem.error();
  if (options.extension_archs.empty()) return Ok{};
  const fs::path extensions = claim_compiled(folder) / "extensions";
  std::error_code ignored;
  fs::create_directories(extensions, ignored);
  static_cast<void>(run_compiler(
      options, {"python3", "-c", load_program, program.string()},
      claim_words(claim, options, program, folder), folder,
      {"TORCH_EXTENSIONS_DIR=" + extensions.string(),
       "TORCH_CUDA_ARCH_LIST=" + options.extension_archs, "PYTHONDONTWRITEBYTECODE=1"}));
  return Ok{};
}

Result<fs::path> built(const ClaimToolsOptions& options, const Claim& claim, const fs::path& source,
                       const fs::path& folder) {
  const auto words = claim_words(claim, options, source, folder);
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

}  // namespace

std::map<std::string, std::string> claim_words(const Claim& claim, const ClaimToolsOptions& options,
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

fs::path claim_compiled(const fs::path& folder) { return folder / "compiled"; }

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

Result<const Problem*> claimed_problem(const Claim& claim, const fs::path& claims_folder,
                                       const fs::path& sources) {
  const Problem* known = find_problem(claim.problem);
  if (known && claim.axes.empty()) return known;
  std::string text;
  std::string_view group = "claims";
  if (claim.problem.ends_with(".json")) {
    const Result<std::string> read = read_file(claims_folder / claim.problem);
    if (!read) return Error{"problem: " + read.error().message};
    text = *read;
  } else if (claim.problem.ends_with(".py")) {
    const Result<std::string> made = imported_problem_text(sources / claim.problem, [] {});
    if (!made) return Error{"problem: " + made.error().message};
    text = *made;
    group = strangers_group;
  } else {
    if (!known) return Error{"problem: " + unknown_problem(claim.problem).message};
    text = known->text;
  }
  Result<json::value> value = parse_json(text, claim.problem);
  if (!value) return value.error();
  json::object* object = value->if_object();
  json::value* axes = object ? object->if_contains("axes") : nullptr;
  if (!axes || !axes->is_object()) return Error{claim.problem + ": has no axes"};
  for (const auto& [axis, size] : claim.axes) {
    json::value* of_file = axes->get_object().if_contains(axis);
    if (!of_file) return Error{claim.problem + ": has no axis \"" + axis + "\""};
    *of_file = size;
  }
  Result<NamedByContent> named = named_by_content(*object);
  if (!named) return Error{claim.problem + ": " + named.error().message};
  if (auto adopted =
          adopt_problem(joined_fields({named->id, std::string(group), named->text}), claim.problem);
      !adopted) {
    return adopted.error();
  }
  return find_problem(named->id);
}

ClaimTools claim_tools(const ClaimToolsOptions& options) {
  ClaimTools tools;
  tools.build = [options](const Claim& claim, const fs::path& source, const fs::path& folder) {
    return built(options, claim, source, folder);
  };
  tools.prepare = [options](const Claim& claim, const fs::path& program, const fs::path& folder) {
    return prepare(options, claim, program, folder);
  };
  const auto judging = std::make_shared<ClaimJudge>(options);
  tools.judge = [judging](const Claim& claim, const fs::path& program, const fs::path& folder,
                          int device,
                          ClaimRow& row) { judging->judge(claim, program, folder, device, row); };
  tools.rehearse = [judging](const Claim& claim, const fs::path& program, const fs::path& folder,
                             int device) { judging->rehearse(claim, program, folder, device); };
  return tools;
}

}  // namespace rekernel
