#include "harness/terminal/tables.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "harness/base/text.h"
#include "harness/terminal/window.h"

namespace rekernel {

namespace po = boost::program_options;

void add_wide_option(po::options_description& options) {
  options.add_options()("wide", po::bool_switch(),
                        "all columns of the tables, however long the lines get");
}

void add_table_options(po::options_description& options) {
  add_wide_option(options);
  options.add_options()("csv", po::bool_switch(), "the tables as CSV");
}

std::string TableFormat::shown(const Table& table) const {
  if (csv) return to_csv(table);
  const TableText laid = laid_out(table, style);
  std::string text = laid.text;
  if (laid.shortened && !table.legend.empty()) text += "\n" + words(table.legend + ".");
  if (!laid.left_out.empty()) {
    text += "\n" +
            words("Left out for want of room: " + joined(laid.left_out) + ". --wide shows them.");
  }
  return text;
}

std::string TableFormat::words(const std::string& text) const {
  // A table may be as wide as the terminal; nobody reads lines of words that are.
  const std::size_t columns = style.width == 0 ? 0 : std::min(style.width, page_columns);
  return csv ? "" : wrapped(text, columns) + "\n";
}

TextStyle terminal_style() {
  TextStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const no_color = ::getenv("NO_COLOR");
  const char* const kind = ::getenv("TERM");
  style.colour =
      terminal && (!no_color || *no_color == '\0') && kind && std::string_view(kind) != "dumb";
  style.width = output_columns();
  return style;
}

TableFormat table_format(const ParsedArguments& parsed) {
  TableFormat format{terminal_style(), parsed.has("csv") && parsed.flag("csv")};
  if (parsed.flag("wide")) format.style.width = 0;
  return format;
}

}  // namespace rekernel
