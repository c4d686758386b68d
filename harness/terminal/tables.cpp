#include "harness/terminal/tables.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/text.h"

namespace rekernel {

namespace po = boost::program_options;

void add_table_options(po::options_description& options) {
  options.add_options()("wide", po::bool_switch(),
                        "all columns of the tables, however long the lines get")(
      "csv", po::bool_switch(), "the tables as CSV");
}

std::string TableFormat::shown(const Table& table) const {
  if (csv) return to_csv(table);
  std::string text = to_text(table, style);
  const std::vector<std::string> missing = left_out(table, style);
  if (!missing.empty()) {
    text += "\n" + words("Left out for want of room: " + joined(missing) + ". --wide shows them.");
  }
  return text;
}

std::string TableFormat::words(const std::string& text) const {
  return csv ? "" : wrapped(text, style.width) + "\n";
}

TextStyle terminal_style() {
  TextStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const no_color = ::getenv("NO_COLOR");
  const char* const kind = ::getenv("TERM");
  style.colour =
      terminal && (!no_color || *no_color == '\0') && kind && std::string_view(kind) != "dumb";
  if (winsize size{}; terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    constexpr std::size_t least = 40;
    if (size.ws_col >= least && size.ws_col < style.width) style.width = size.ws_col;
  }
  return style;
}

TableFormat table_format(const ParsedArguments& parsed) {
  TableFormat format{terminal_style(), parsed.flag("csv")};
  if (parsed.flag("wide")) format.style.width = 0;
  return format;
}

}  // namespace rekernel
