#include "harness/compile/compiler_message.h"

#include <algorithm>

#include "harness/base/utf8.h"
#include "harness/compile/cubin.h"

namespace rekernel {

namespace {

constexpr std::string_view blanks = " \t\n";

/// Takes the first line from the text, without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

bool is_of_report(std::string_view line) {
  return line.starts_with("ptxas info") || line.starts_with("ptxas         .") ||
         line.starts_with("    ");
}

/// The first line that speaks of an error, or else says anything.
std::string_view first_error(std::string_view lines) {
  std::string_view other;
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    const bool of_error = line.find("error") != std::string_view::npos;
    if (of_error && !is_of_report(line)) return trimmed(line);
    if (other.empty() && !is_of_report(line)) other = trimmed(line);
  }
  return other;
}

}  // namespace

std::string headline(std::string_view message, std::size_t max_bytes) {
  std::string_view rest = message;
  std::string line(take_line(rest));
  if (line.ends_with(':')) {
    const std::string_view error = first_error(rest);
    if (error.empty()) line.pop_back();
    if (!error.empty()) line.append(" ").append(error);
  }
  return one_line(line, max_bytes);
}

std::string for_any_target(std::string message, std::string_view target) {
  const std::string named = " for " + std::string(target);
  const std::size_t at = message.find(named);
  if (at != std::string::npos) message.erase(at, named.size());
  return message;
}

std::string told_message(std::string_view message) {
  const std::string_view whole = trimmed(message);
  const std::string first = headline(whole) + "\n";
  if (whole.find('\n') == std::string_view::npos) return first;
  return first + quoted_lines(visible_lines(whole, whole.size()));
}

std::string warnings_in(std::string_view log) {
  return std::string(trimmed(log.substr(0, report_begin(log))));
}

std::size_t report_begin(std::string_view log) {
  std::size_t begin = log.size();
  while (begin > 0) {
    // The line feed before the last line of what is left.
    const std::size_t feed = begin >= 2 ? log.rfind('\n', begin - 2) : std::string_view::npos;
    const std::size_t line = feed == std::string_view::npos ? 0 : feed + 1;
    if (!is_of_report(log.substr(line, begin - line))) break;
    begin = line;
  }
  return begin;
}

std::string shared_memory_error(std::string_view log, std::int64_t most_bytes) {
  constexpr std::string_view entry = "Compiling entry function '";
  std::string_view kernel = "?";
  for (std::string_view rest = log; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (const std::size_t at = line.find(entry); at != std::string_view::npos) {
      kernel = line.substr(at + entry.size());
      kernel = kernel.substr(0, kernel.find('\''));
    }
    const std::int64_t bytes = number_before(line, " bytes smem");
    if (bytes <= most_bytes) continue;
    return "error: kernel \"" + one_line(kernel, 100) + "\" has " + std::to_string(bytes) +
           " bytes of static shared memory; expected at most " + std::to_string(most_bytes) + "\n";
  }
  return "";
}

}  // namespace rekernel
