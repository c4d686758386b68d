#include "harness/base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace rekernel {
namespace {

/// The first `columns` columns of a text.
std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && seen++ == columns) break;
  }
  return text.substr(0, end);
}

std::string wrapped_line(std::string_view line, std::size_t columns, std::size_t indent,
                         LongWords long_words) {
  std::string result;
  std::size_t column = 0;
  const auto start_line = [&] {
    result += "\n" + std::string(indent, ' ');
    column = indent;
  };
  line = line.substr(0, line.find_last_not_of(' ') + 1);
  while (!line.empty()) {
    // A word, with the blanks before it.
    const std::size_t begin = line.find_first_not_of(' ');
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    if (column + columns_of(word) > columns) {
      const bool first = column == 0;
      if (!first) start_line();
      if (!first || long_words == LongWords::broken) word.remove_prefix(begin);
    }
    while (long_words == LongWords::broken && column + columns_of(word) > columns) {
      const std::string_view part = first_columns(word, columns - column);
      result += part;
      word.remove_prefix(part.size());
      start_line();
    }
    result += word;
    column += columns_of(word);
  }
  return result;
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

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    LongWords long_words) {
  if (columns <= indent) return std::string(text);
  std::string result;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += wrapped_line(text.substr(0, end), columns, indent, long_words);
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

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::optional<std::string> from_hexadecimal(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned char byte = 0;
    const auto [end, code] = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (code != std::errc() || end != text.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string seconds_text(std::chrono::milliseconds time) {
  return printed("%.15g", static_cast<double>(time.count()) / 1000) + " s";
}

namespace {

/// Damerau and Levenshtein's distance, where no character is changed after it was swapped.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                              least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t longest = 200;
  std::string best;
  std::size_t best_distance = longest;
  if (word.size() > longest) return best;
  for (const std::string& one : words) {
    const std::size_t changes = distance(word, one);
    if (changes >= best_distance || 3 * changes > std::max(word.size(), one.size())) continue;
    best = one;
    best_distance = changes;
  }
  return best;
}

std::string counted(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace rekernel
