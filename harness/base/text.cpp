#include "harness/base/text.h"

#include <algorithm>
#include <cstdio>

namespace rekernel {
namespace {

/// Characters, not bytes.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string wrapped_line(std::string_view line, std::size_t columns, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  while (true) {
    // A word, with the blanks before it.
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(0, end);
    const std::size_t width = columns_of(word);
    if (column > 0 && column + width > columns) {
      result += "\n" + std::string(indent, ' ');
      column = indent + width - begin;
      result += word.substr(begin);
    } else {
      result += word;
      column += width;
    }
    if (end == line.size()) return result;
    line.remove_prefix(end);
  }
}

}  // namespace

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string result;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += wrapped_line(text.substr(0, end), columns, indent);
    if (end == text.size()) return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace rekernel
