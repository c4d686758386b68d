#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/terminal/arguments.h"
#include "harness/terminal/help_text.h"
#include "harness/terminal/man_page.h"
#include "ops/result.h"

namespace rekernel {

/// One command of `rekernel`. Its name has one word or two.
struct Command {
  const char* name;
  const char* group;  ///< the title that it is listed under
  const char* summary;
  int (*run)(const Arguments& arguments);
};

/// Commands of a group stand together.
std::span<const Command> all_commands();
const Command* find_command(const std::string& name);
/// The command that these words begin with.
const Command* command_of(const std::vector<std::string>& words);
/// How many words its name has.
std::size_t words_of_name(const Command& command);

Page page_of(const Command& command);

/// The commands that begin with a word ("problem"); all for an empty one. By their groups.
std::vector<CommandGroup> listed_commands(const std::string& first_word = "");

/// Exit statuses of all commands.
std::vector<Item> exit_statuses();

/// What the program is, for people who meet it.
std::string program_description();

/// What `rekernel --help` prints.
std::string overview(std::size_t columns);
/// What `rekernel problem --help` prints.
std::string overview_of(const std::string& first_word, std::size_t columns);

/// "unknown command 'evalute' (did you mean 'evaluate'?); see rekernel help".
Error unknown_command(const std::vector<std::string>& words);

/// What `rekernel --version` prints.
int print_version(bool as_json);

}  // namespace rekernel
