#include "harness/base/markdown.h"

#include "harness/base/json.h"

namespace rekernel {

namespace {

std::string on_one_line(std::string_view text) {
  std::string line(text);
  for (char& character : line) {
    if (character == '\n') character = ' ';
  }
  return one_line(line, line.size());
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string markdown_text(std::string_view text) {
  const std::string line = on_one_line(text);
  std::string escaped;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char character = line[i];
    // "[1]" alone is no link, and frequent.
    const bool links =
        character == ']' && i + 1 < line.size() && (line[i + 1] == '(' || line[i + 1] == '[');
    if (character == '<') {
      escaped += "&lt;";
    } else if (character == '>') {
      escaped += "&gt;";
    } else if (character == '&') {
      escaped += "&amp;";
    } else {
      if (links || character == '\\' || character == '|' || character == '`') escaped += '\\';
      escaped += character;
    }
  }
  // GitHub makes links of bare addresses.
  replace_all(escaped, "://", "&#58;//");
  replace_all(escaped, "www.", "www&#46;");
  return escaped;
}

std::string markdown_lines(std::string_view text) {
  std::string escaped;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    escaped += markdown_text(text.substr(begin, end - begin));
    if (end == std::string_view::npos) break;
    escaped += '\n';
    begin = end + 1;
  }
  return escaped;
}

std::string markdown_code(std::string_view text, std::size_t max_bytes) {
  std::string inside;
  for (const char character : one_line(text, max_bytes)) {
    inside += character == '`' ? '\'' : character;
  }
  return inside.empty() ? "" : "`` " + inside + " ``";
}

}  // namespace rekernel
