#include "harness/jobs/command_prefix.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "harness/base/json.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace {

constexpr std::string_view blanks = " \t";
/// Unquoted, they make a word more than its characters.
constexpr std::string_view special = "$`;&|<>(){}*?[]~#!\n";

/// Takes the first word and the blanks before it; nothing where a shell would have to expand it.
std::optional<std::string> take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  std::string word;
  char quote = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (quote == 0 && blanks.find(c) != std::string_view::npos) break;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && text.size() > 1) {
      text.remove_prefix(1);
      word += text.front();
    } else if (quote == 0 ? special.find(c) != std::string_view::npos
                          : quote == '"' && (c == '$' || c == '`')) {
      return std::nullopt;
    } else {
      word += c;
    }
  }
  return word;
}

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

}  // namespace

std::optional<std::string> program_of_prefix(const std::string& prefix) {
  std::string_view rest = prefix;
  while (true) {
    std::optional<std::string> word = take_word(rest);
    if (!word || word->empty()) return std::nullopt;
    if (!is_assignment(*word)) return word;
  }
}

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
