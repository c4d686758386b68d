#include "harness/terminal/help_text.h"

#include <algorithm>

#include "harness/base/text.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::size_t indent = 2;
/// Between a term and its text.
constexpr std::size_t gap = 2;

std::string heading(const std::string& title) { return "\n" + title + ":\n"; }

std::string indented(const std::string& text, std::size_t columns) {
  return wrapped(std::string(indent, ' ') + text, columns, indent) + "\n";
}

}  // namespace

std::string item_list(const std::vector<Item>& items, std::size_t columns) {
  constexpr std::size_t widest_term = 24;
  std::size_t width = 0;
  for (const Item& item : items) {
    const std::size_t own = columns_of(item.term);
    if (own <= widest_term) width = std::max(width, own);
  }
  const std::size_t begin = indent + width + gap;
  std::string text;
  for (const Item& item : items) {
    std::string line = std::string(indent, ' ') + item.term;
    if (columns_of(item.term) > width) {
      text += line + "\n";
      line.clear();
    }
    line.append(begin - columns_of(line), ' ');
    text += wrapped(line + item.text, columns, begin) + "\n";
  }
  return text;
}

std::string term_of(const po::option_description& option) {
  const ShownOption shown = shown_option(option);
  const std::string brief =
      option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  std::string term = (brief.size() == 2 && brief[0] == '-' ? brief + ", " : "") + "--" + shown.name;
  if (!shown.value.empty()) term += " " + shown.value;
  return shown.repeats ? term + " …" : term;
}

std::string help_text(const std::string& command, const std::string& summary, const Page& page,
                      std::size_t columns) {
  const std::string name = "rekernel " + command;
  std::string text = wrapped("Usage: " + name + " " + page.usage_text(), columns, 7) + "\n";
  if (!summary.empty()) text += "\n" + wrapped(summary, columns) + "\n";
  if (!page.description.empty()) text += "\n" + wrapped(page.description, columns) + "\n";
  if (!page.positionals().empty()) {
    std::vector<Item> items;
    for (const Positional& one : page.positionals()) items.push_back({one.usage(), one.text});
    text += heading("Arguments") + item_list(items, columns);
  }
  if (!page.examples.empty()) {
    text += heading(page.examples.size() == 1 ? "Example" : "Examples");
    for (const Example& one : page.examples) {
      if (!one.what.empty()) text += indented("# " + one.what, columns);
      text += std::string(indent, ' ') + one.line + "\n";
    }
  }
  for (const OptionGroup& group : page.groups()) {
    std::vector<Item> items;
    for (const auto& option : group.options.options()) {
      items.push_back({term_of(*option), shown_option(*option).text});
    }
    text += heading(group.title) + item_list(items, columns);
  }
  std::vector<Item> statuses;
  for (const auto& [status, meaning] : page.statuses) {
    statuses.push_back({std::to_string(status), meaning});
  }
  return text + heading("Exit status") + item_list(statuses, columns);
}

}  // namespace rekernel
