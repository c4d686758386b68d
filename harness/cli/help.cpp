#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/commands.h"
#include "harness/records/report.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/pager.h"
#include "harness/terminal/window.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

Page help_page() {
  Page page;
  page.takes(
      {"command", "COMMAND", "a command, of one word or two; all commands by default", Count::any},
      list_value("COMMAND", {Names::command}));
  page.group("Output").add_options()(
      "man", text_value("DIR", {Names::folder}),
      "write the manual pages rekernel.1 and rekernel-COMMAND.1 into this folder")(
      "json", po::bool_switch(), "print all pages as JSON");
  page.description =
      "Shows the page of a command, in a pager on a terminal (PAGER, else less). "
      "`rekernel COMMAND --help` prints the same.";
  page.examples = {{"rekernel help search"},
                   {"rekernel help problem check"},
                   {"rekernel help --man ~/.local/share/man/man1", "for man rekernel-search"}};
  return page;
}

/// Everything or what could not be written.
int write_manual(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return bad_input({folder.string() + ": cannot be made: " + failure.message()});
  const ManualEdition edition{REKERNEL_VERSION, today()};
  std::vector<std::pair<std::string, std::string>> pages = {
      {"rekernel.1",
       man_overview(program_description(), listed_commands(), exit_statuses(), edition)}};
  for (const Command& command : all_commands()) {
    std::string name = "rekernel-" + std::string(command.name) + ".1";
    std::replace(name.begin(), name.end(), ' ', '-');
    pages.emplace_back(std::move(name),
                       man_page(command.name, command.summary, page_of(command), edition));
  }
  for (const auto& [name, page] : pages) {
    const Result<Ok> written = write_file_atomically(folder / name, page);
    if (!written) return bad_input(written.error());
  }
  std::cout << counted(pages.size(), "manual page") << " in " << folder.string() << "\n";
  return exit_good;
}

const char* to_string(Names names) {
  switch (names) {
    case Names::anything:
      return "anything";
    case Names::file:
      return "file";
    case Names::folder:
      return "folder";
    case Names::problem:
      return "problem";
    case Names::kernel:
      return "kernel";
    case Names::search:
      return "search";
    case Names::command:
      return "command";
  }
  return "";
}

json::object rule_json(const ValueRule* rule) {
  json::object object;
  if (!rule) return object;
  if (!rule->words.empty()) object["words"] = json::value_from(rule->words);
  if (rule->range) object["range"] = {rule->range->least, rule->range->most};
  json::array names;
  for (const Names one : rule->names) names.push_back(to_string(one));
  if (!names.empty()) object["names"] = std::move(names);
  return object;
}

json::object page_json(const Command& command) {
  const Page page = page_of(command);
  json::array arguments, groups, examples;
  for (const Positional& one : page.positionals()) {
    json::object argument = rule_json(page.rule_of_positional(one.key));
    argument["name"] = one.shown;
    argument["usage"] = one.usage();
    argument["text"] = one.text;
    arguments.push_back(std::move(argument));
  }
  for (const OptionGroup& group : page.groups()) {
    json::array options;
    for (const auto& option : group.options.options()) {
      const ShownOption shown = shown_option(*option);
      json::object object = rule_json(shown.rule);
      object["name"] = shown.name;
      object["value"] = shown.value;
      object["text"] = shown.text;
      options.push_back(std::move(object));
    }
    groups.push_back({{"title", group.title}, {"options", std::move(options)}});
  }
  for (const Example& one : page.examples) {
    examples.push_back({{"line", one.line}, {"what", one.what}});
  }
  json::object statuses;
  for (const auto& [status, meaning] : page.statuses) statuses[std::to_string(status)] = meaning;
  return {{"name", command.name},
          {"group", command.group},
          {"summary", command.summary},
          {"usage", "rekernel " + std::string(command.name) + " " + page.usage_text()},
          {"description", page.description},
          {"arguments", std::move(arguments)},
          {"groups", std::move(groups)},
          {"examples", std::move(examples)},
          {"exit_status", std::move(statuses)}};
}

int print_pages_as_json() {
  json::array pages;
  for (const Command& command : all_commands()) pages.push_back(page_json(command));
  std::cout << pretty_json(json::object{{"version", REKERNEL_VERSION}, {"commands", pages}});
  return exit_good;
}

}  // namespace

int help_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, help_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.has("man")) return write_manual(parsed.get<std::string>("man"));
  if (parsed.flag("json")) return print_pages_as_json();
  const std::size_t columns = output_columns();
  if (!parsed.has("command")) {
    show_in_pager(overview(columns));
    return exit_good;
  }
  const auto& words = parsed.get<std::vector<std::string>>("command");
  if (const Command* command = command_of(words);
      command && words_of_name(*command) == words.size()) {
    show_in_pager(help_text(command->name, command->summary, page_of(*command), columns));
    return exit_good;
  }
  if (words.size() == 1 && !listed_commands(words[0]).empty()) {
    show_in_pager(overview_of(words[0], columns));
    return exit_good;
  }
  return bad_input(unknown_command(words));
}

}  // namespace rekernel
