#include "harness/terminal/tables.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "harness/base/text.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::size_t least_columns = 40;  ///< narrower terminals break the lines themselves

}  // namespace

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

std::size_t output_columns(std::size_t terminal, const char* variable) {
  if (terminal > 0) return std::max(terminal, least_columns);
  std::size_t columns = 0;
  const std::string_view text = variable ? variable : "";
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool good = failure == std::errc() && end == text.data() + text.size() && columns > 0;
  return good ? std::max(columns, least_columns) : page_columns;
}

TextStyle terminal_style() {
  TextStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const no_color = ::getenv("NO_COLOR");
  const char* const kind = ::getenv("TERM");
  style.colour =
      terminal && (!no_color || *no_color == '\0') && kind && std::string_view(kind) != "dumb";
  winsize size{};
  const bool told = terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  style.width = output_columns(told ? size.ws_col : 0, ::getenv("COLUMNS"));
  return style;
}

TableFormat table_format(const ParsedArguments& parsed) {
  TableFormat format{terminal_style(), parsed.has("csv") && parsed.flag("csv")};
  if (parsed.flag("wide")) format.style.width = 0;
  return format;
}

}  // namespace rekernel
