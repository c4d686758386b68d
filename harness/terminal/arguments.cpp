#include "harness/terminal/arguments.h"

#include <algorithm>
#include <iostream>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/help_text.h"
#include "harness/terminal/suggestion.h"
#include "harness/terminal/window.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::size_t longest_shown = 64;

std::vector<std::string> names_of_options(const Page& page) {
  std::vector<std::string> names = {"--help"};
  for (const OptionGroup& group : page.groups()) {
    for (const auto& option : group.options.options()) {
      names.push_back("--" + option->long_name());
    }
  }
  return names;
}

/// What is wrong with the arguments, in the words of the page.
std::string complaint(const po::error& error, const Page& page) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    const std::string name = unknown->get_option_name();
    return "unknown option '" + one_line(name, longest_shown) + "'" +
           did_you_mean(name, names_of_options(page));
  }
  if (const auto* ambiguous = dynamic_cast<const po::ambiguous_option*>(&error)) {
    std::vector<std::string> names;
    for (const std::string& one : ambiguous->alternatives()) names.push_back("--" + one);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return "'" + one_line(ambiguous->get_option_name(), longest_shown) + "' may be " +
           joined(names, " or ");
  }
  if (dynamic_cast<const po::too_many_positional_options_error*>(&error)) {
    if (page.positionals().empty()) return "expected options alone";
    std::vector<std::string> shown;
    for (const Positional& one : page.positionals()) shown.push_back(one.shown);
    return "too many arguments: expected " + joined(shown, " ") + " and options";
  }
  // The parser knows positional arguments by their keys.
  const std::string text = error.what();
  for (const Positional& one : page.positionals()) {
    const std::string name = "--" + one.key;
    if (text.starts_with(name + " ") || text.starts_with(name + ":")) {
      return one.shown + text.substr(name.size());
    }
  }
  return text;
}

/// The first positional argument that has to be there and is not.
std::optional<std::string> missing_positional(const Page& page, const po::variables_map& values) {
  for (const Positional& one : page.positionals()) {
    const bool needed = one.count == Count::one || one.count == Count::some;
    if (needed && values.count(one.key) == 0) return one.shown;
  }
  return std::nullopt;
}

std::vector<GivenOption> given_options(const po::parsed_options& parsed) {
  std::vector<GivenOption> given;
  for (const po::option& one : parsed.options) {
    if (one.position_key == -1) given.push_back({one.string_key, one.value});
  }
  return given;
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ParsedArguments parse_arguments(const Arguments& arguments, Page page) {
  ParsedArguments parsed;
  page.group("Help").add_options()("help,h", po::bool_switch(), "print this text");
  if (arguments.wanted()) {
    arguments.wanted()->emplace(std::move(page));
    parsed.exit_status = exit_good;
    return parsed;
  }
  const auto refuse = [&](const std::string& message) {
    parsed.exit_status = bad_input(
        {arguments.command() + ": " + message + "; see rekernel help " + arguments.command()});
    return parsed;
  };
  try {
    const po::options_description all = page.all_options();
    const po::parsed_options read =
        po::command_line_parser(arguments.words()).options(all).positional(page.positions()).run();
    po::store(read, parsed.values);
    if (parsed.flag("help")) {
      std::cout << help_text(arguments.command(), arguments.summary(), page, output_columns());
      parsed.exit_status = exit_good;
      return parsed;
    }
    po::notify(parsed.values);
    parsed.options = given_options(read);
  } catch (const po::error& error) {
    return refuse(complaint(error, page));
  }
  if (const auto missing = missing_positional(page, parsed.values)) {
    return refuse("expected " + *missing);
  }
  return parsed;
}

}  // namespace rekernel
