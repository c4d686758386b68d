#include "harness/terminal/completion.h"

#include <iostream>

#include "harness/cli/command.h"
#include "harness/cli/commands.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/project/unfinished_searches.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace {

/// Those of the project that one stands in: nothing is said while one types.
std::vector<std::string> known_names(Names names) {
  std::vector<std::string> known;
  const Result<std::filesystem::path> root = own_project();
  switch (names) {
    case Names::problem:
      for (const Problem& problem : catalog()) known.push_back(problem.id);
      break;
    case Names::kernel:
      if (root) known = kernel_names(*root);
      break;
    case Names::search:
      if (root) known = search_names(*root);
      break;
    case Names::command:
      for (const Command& command : all_commands()) known.emplace_back(command.name);
      break;
    case Names::anything:
    case Names::file:
    case Names::folder:
      break;
  }
  return known;
}

CompletionSource completion_source() {
  CompletionSource source;
  for (const CommandGroup& group : listed_commands()) {
    source.commands.insert(source.commands.end(), group.commands.begin(), group.commands.end());
  }
  source.page = [](const std::string& name) -> std::optional<Page> {
    const Command* const command = find_command(name);
    if (!command) return std::nullopt;
    return page_of(*command);
  };
  source.names = known_names;
  return source;
}

Page completion_page() {
  Page page;
  page.takes({"shell", "SHELL", "whose completion", Count::one}, one_of(shells_with_completion()));
  page.description =
      "Prints a script that completes commands, options, values, and the names of problems, "
      "kernels "
      "and searches. For every new shell: bash: eval \"$(rekernel completion bash)\" in ~/.bashrc; "
      "zsh: the same with zsh, after compinit, in ~/.zshrc; fish: rekernel completion fish | "
      "source "
      "in ~/.config/fish/config.fish.";
  page.examples = {{"rekernel completion bash"}};
  return page;
}

}  // namespace

int completion_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, completion_page());
  if (parsed.exit_status) return *parsed.exit_status;
  std::cout << *completion_script(parsed.get<std::string>("shell"));
  return exit_good;
}

int complete_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  std::cout << to_lines(complete(words, completion_source()));
  return exit_good;
}

}  // namespace rekernel
