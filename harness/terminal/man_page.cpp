#include "harness/terminal/man_page.h"

#include <algorithm>
#include <sstream>

#include "harness/base/text.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

/// Text that roff sets as it is. What begins a line with a dot or an apostrophe would be a request.
std::string set_line(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// The same in lines of moderate length.
std::string roff(const std::string& words) {
  constexpr std::size_t columns = 72;
  return set_line(wrapped(words, columns));
}

std::string bold(const std::string& text) { return "\\fB" + set_line(text) + "\\fR"; }

std::string section(const std::string& title) { return ".SH " + title + "\n"; }

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c < 0x80 ? static_cast<char>(std::toupper(c)) : static_cast<char>(c);
  });
  return text;
}

/// Paragraphs are apart by an empty line, which roff frowns on.
std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string set;
  bool empty_before = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      empty_before = true;
      continue;
    }
    if (empty_before) set += ".PP\n";
    empty_before = false;
    set += roff(line) + "\n";
  }
  return set;
}

std::string items_text(const std::vector<Item>& items) {
  std::string text;
  for (const Item& item : items) {
    text += ".TP\n" + bold(item.term) + "\n" + roff(item.text) + "\n";
  }
  return text;
}

std::string file_name(const std::string& command) {
  std::string name = "rekernel" + std::string(command.empty() ? "" : "-") + command;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string head(const std::string& command, const std::string& summary,
                 const ManualEdition& edition) {
  const std::string name = file_name(command);
  return ".TH " + in_capitals(roff(name)) + " 1 \"" + edition.date + "\" \"rekernel " +
         edition.version + "\" \"Rekernel\"\n.nh\n" + section("NAME") + roff(name) + " \\- " +
         roff(summary) + "\n";
}

std::string examples_text(const std::vector<Example>& examples) {
  std::string text = section("EXAMPLES");
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i > 0) text += ".PP\n";
    if (!examples[i].what.empty()) text += roff(examples[i].what) + ":\n.PP\n";
    text += ".nf\n.RS\n" + set_line(examples[i].line) + "\n.RE\n.fi\n";
  }
  return text;
}

}  // namespace

std::string man_page(const std::string& command, const std::string& summary, const Page& page,
                     const ManualEdition& edition) {
  std::string text = head(command, summary, edition) + section("SYNOPSIS") +
                     bold("rekernel " + command) + " " + roff(page.usage_text()) + "\n";
  if (!page.description.empty()) text += section("DESCRIPTION") + paragraphs(page.description);
  if (!page.positionals().empty()) {
    std::vector<Item> items;
    for (const Positional& one : page.positionals()) items.push_back({one.usage(), one.text});
    text += section("ARGUMENTS") + items_text(items);
  }
  if (!page.examples.empty()) text += examples_text(page.examples);
  text += section("OPTIONS");
  for (const OptionGroup& group : page.groups()) {
    std::vector<Item> items;
    for (const auto& option : group.options.options()) {
      items.push_back({term_of(*option), shown_option(*option).text});
    }
    if (page.groups().size() > 1) text += ".SS " + roff(group.title) + "\n";
    text += items_text(items);
  }
  std::vector<Item> statuses;
  for (const auto& [status, meaning] : page.statuses) {
    statuses.push_back({std::to_string(status), meaning});
  }
  return text + section("\"EXIT STATUS\"") + items_text(statuses) + section("\"SEE ALSO\"") +
         "\\fBrekernel\\fR(1)\n";
}

std::string man_overview(const std::string& description, const std::vector<CommandGroup>& groups,
                         const std::vector<Item>& statuses, const ManualEdition& edition) {
  std::string text =
      head("", "reproduce, replay and check claims about AI-generated GPU kernels", edition) +
      section("SYNOPSIS") + "\\fBrekernel\\fR COMMAND [arguments] [options]\n" +
      section("DESCRIPTION") + paragraphs(description) + section("COMMANDS");
  std::string others;
  for (const CommandGroup& group : groups) {
    text += ".SS " + roff(group.title) + "\n" + items_text(group.commands);
    for (const Item& one : group.commands) {
      others += (others.empty() ? "" : ",\n") + bold(file_name(one.term)) + "(1)";
    }
  }
  return text + section("\"EXIT STATUS\"") + items_text(statuses) + section("\"SEE ALSO\"") +
         others + "\n";
}

}  // namespace rekernel
