#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/terminal/help_text.h"
#include "harness/terminal/page.h"

namespace rekernel {

/// What completion knows of the program.
struct CompletionSource {
  std::vector<Item> commands;  ///< "problem check", with its summary
  std::function<std::optional<Page>(const std::string& command)> page;
  std::function<std::vector<std::string>(Names)> names;
};

/// What may stand in place of the last word.
struct Completions {
  std::vector<Item> words;
  bool files = false;    ///< and files, which the shell completes
  bool folders = false;  ///< and folders
};

/// Completes the last of the words after the program's name; it may be empty. A word "=" between an
/// option and its value is how bash cuts --option=value.
Completions complete(const std::vector<std::string>& words, const CompletionSource& source);

/// A line each, "WORD<tab>DESCRIPTION", and at the end ":files" or ":folders".
std::string to_lines(const Completions& completions);

/// The script that teaches a shell (bash, zsh, fish) to ask `rekernel complete`; nothing for
/// another shell.
std::optional<std::string> completion_script(const std::string& shell);

/// The shells that there is a script for.
std::vector<std::string> shells_with_completion();

}  // namespace rekernel
