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

constexpr std::size_t least_columns = 40;  ///< narrower terminals break the lines themselves

}  // namespace

std::size_t output_columns(std::size_t terminal, const char* variable) {
  if (terminal > 0) return std::max(terminal, least_columns);
  std::size_t columns = 0;
  const std::string_view text = variable ? variable : "";
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool good = failure == std::errc() && end == text.data() + text.size() && columns > 0;
  return good ? std::max(columns, least_columns) : page_columns;
}

std::size_t output_columns() {
  winsize size{};
  const bool known = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return output_columns(known ? size.ws_col : 0, ::getenv("COLUMNS"));
}

}  // namespace rekernel
