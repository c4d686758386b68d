#include "harness/process/tool.h"

#include <limits>

#include "harness/process/isolate.h"

namespace rekernel {

Result<ToolOutcome> run_tool(const ToolCommand& tool) {
  ChildCommand command;
  // The child's words go to the result pipe.
  command.arguments = {"/bin/sh", "-c", "exec \"$@\" >&3 3>&-", "sh"};
  command.arguments.insert(command.arguments.end(), tool.arguments.begin(), tool.arguments.end());
  command.input = tool.input;
  command.environment = tool.environment;
  command.limits.processor_time = std::chrono::hours(24 * 365);
  command.limits.file_bytes = std::numeric_limits<std::int64_t>::max();
  command.limits.open_files = 1 << 16;
  command.deadline = tool.deadline;
  command.exit_deadline = tool.deadline;
  command.stop = tool.stop;
  Result<ChildOutcome> child = run_child(command);
  if (!child) return child.error();
  ToolOutcome outcome;
  outcome.output = std::move(child->result);
  outcome.last_words = std::move(child->last_words);
  if (child->end == ChildOutcome::End::exited) outcome.exit_status = child->code;
  outcome.late = child->end == ChildOutcome::End::deadline;
  if (!outcome.last_words.empty()) return outcome;
  outcome.last_words = "it " + how_it_ended(*child);
  if (outcome.late) {
    outcome.last_words += " of " + std::to_string(tool.deadline.count() / 1000) + " s";
  }
  return outcome;
}

std::string shell_quoted(const std::string& text) {
  std::string word = "'";
  for (const char character : text) {
    if (character == '\'') {
      word += "'\\''";
    } else {
      word += character;
    }
  }
  return word + "'";
}

}  // namespace rekernel
