#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/terminal/page.h"

namespace rekernel {

/// What a command is called with: the words after its name. Or nothing but a place for its page, as
/// help and completion do: parse_arguments() fills it in and ends the command.
class Arguments {
 public:
  Arguments(std::string command, std::string summary, std::vector<std::string> words)
      : command_(std::move(command)), summary_(std::move(summary)), words_(std::move(words)) {}
  Arguments(std::string command, std::optional<Page>& wanted)
      : command_(std::move(command)), wanted_(&wanted) {}

  const std::string& command() const { return command_; }  ///< "problem check"
  const std::string& summary() const { return summary_; }
  const std::vector<std::string>& words() const { return words_; }
  std::optional<Page>* wanted() const { return wanted_; }

 private:
  std::string command_, summary_;
  std::vector<std::string> words_;
  std::optional<Page>* wanted_ = nullptr;
};

/// An option as it was given: "seed" with its values.
struct GivenOption {
  std::string name;
  std::vector<std::string> values;
};

/// The outcome of parsing: values, or the exit status to return at once (help was printed, or the
/// arguments were bad and the error was printed).
struct ParsedArguments {
  boost::program_options::variables_map values;
  std::vector<GivenOption> options;  ///< in their order, without positionals
  std::optional<int> exit_status;

  bool has(const char* name) const { return values.count(name) > 0; }
  /// Whether it was said, and is no default.
  bool given(const char* name) const { return has(name) && !values[name].defaulted(); }
  template <class T>
  const T& get(const char* name) const {
    return values[name].as<T>();
  }
  bool flag(const char* name) const { return values[name].as<bool>(); }
};

/// A word as a shell reads it, in quotes where that is needed.
std::string shell_word(const std::string& word);

/// Parses a command's arguments by its page, first thing in the command. Adds --help and -h, which
/// print the page. An error is one line, with what may have been meant and where help is.
ParsedArguments parse_arguments(const Arguments& arguments, Page page);

}  // namespace rekernel
