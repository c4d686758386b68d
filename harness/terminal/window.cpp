#include "harness/terminal/window.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "harness/base/text.h"

namespace rekernel {

namespace {

constexpr std::size_t least_columns = 40;

/// What COLUMNS says; 0 where it says no number.
std::size_t said_columns() {
  const char* const said = ::getenv("COLUMNS");
  if (!said) return 0;
  const std::string_view text = said;
  std::size_t columns = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return code == std::errc() && end == text.data() + text.size() ? columns : 0;
}

}  // namespace

std::size_t output_columns() {
  std::size_t columns = 0;
  if (winsize size{}; ::isatty(STDOUT_FILENO) == 1) {
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  } else {
    columns = said_columns();
  }
  return columns == 0 ? page_columns : std::max(columns, least_columns);
}

}  // namespace rekernel
