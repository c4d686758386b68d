#include "harness/jobs/command_prefix.h"

#include <unistd.h>
#include <wordexp.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "harness/base/json.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace {

bool is_assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  return equals != std::string::npos && is_identifier(word.substr(0, equals));
}

Result<ToolOutcome> ask_shell(std::vector<std::string> arguments,
                              const std::optional<std::vector<std::string>>& environment) {
  ToolCommand command;
  command.arguments = {"/bin/sh"};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.environment = environment;
  command.deadline = std::chrono::seconds(10);
  return run_tool(command);
}

std::string search_path(const std::optional<std::vector<std::string>>& environment) {
  constexpr std::string_view name = "PATH=";
  if (!environment) {
    const char* own = std::getenv("PATH");
    return own ? own : "";
  }
  for (const std::string& variable : *environment) {
    if (variable.starts_with(name)) return variable.substr(name.size());
  }
  return "";
}

/// The program with which a prefix begins, after assignments; nothing where only running it would
/// tell (`$(pick-host)`, say).
std::optional<std::string> program_of_prefix(const std::string& prefix) {
  wordexp_t words{};
  if (::wordexp(prefix.c_str(), &words, WRDE_NOCMD) != 0) return std::nullopt;
  std::optional<std::string> program;
  for (std::size_t i = 0; i < words.we_wordc && !program; ++i) {
    if (!is_assignment(words.we_wordv[i])) program = words.we_wordv[i];
  }
  ::wordfree(&words);
  return program;
}

}  // namespace

Result<Ok> check_prefix(const std::string& prefix,
                        const std::optional<std::vector<std::string>>& environment) {
  const std::string where = "--prefix '" + one_line(prefix, 200) + "': ";
  const auto read = ask_shell({"-n", "-c", prefix + " \"$@\""}, environment);
  if (!read) return read.error();
  if (!read->good()) return Error{where + "the shell cannot read it: " + read->last_words};
  const std::optional<std::string> program = program_of_prefix(prefix);
  if (!program) return Ok{};
  std::string found = *program;
  if (program->find('/') == std::string::npos) {
    const auto answer = ask_shell({"-c", "command -v -- \"$1\"", "sh", *program}, environment);
    if (!answer) return answer.error();
    if (!answer->good()) {
      return Error{where + "no program " + one_line(*program, 100) + " in the folders of PATH (" +
                   one_line(search_path(environment), 400) + ")"};
    }
    found = answer->output.substr(0, answer->output.find('\n'));
    if (!found.starts_with('/')) return Ok{};  // the shell's own
  }
  std::error_code failed;
  if (!std::filesystem::is_regular_file(found, failed)) {
    const std::string shown = std::filesystem::absolute(found, failed).string();
    return Error{where + "no program " + one_line(shown, 400)};
  }
  if (::access(found.c_str(), X_OK) != 0) {
    return Error{where + one_line(found, 400) + " is not executable (chmod +x)"};
  }
  return Ok{};
}

}  // namespace rekernel
