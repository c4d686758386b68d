#include "harness/records/cell_text.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>

#include "harness/base/utf8.h"

namespace rekernel {

namespace {

/// Widths as the C library knows them, whatever locale the process has: wcwidth asks the thread's.
class Widths {
 public:
  Widths() : previous_(::uselocale(table())) {}
  ~Widths() { ::uselocale(previous_); }
  Widths(const Widths&) = delete;
  Widths& operator=(const Widths&) = delete;

  std::size_t of(std::string_view character) const {
    if (character.size() == 1 || table() == nullptr || character_length(character, 0) == 0)
      return 1;
    const int width = ::wcwidth(static_cast<wchar_t>(code_point(character)));
    return width < 0 ? 1 : static_cast<std::size_t>(width);
  }

 private:
  static locale_t table() {
    static const locale_t made = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return made;
  }

  locale_t previous_;
};

/// The first character of a text, a byte of what is not UTF-8.
std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(1, character_length(text, 0)));
}

std::size_t width_of(std::string_view text, const Widths& widths) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    columns += widths.of(character);
    text.remove_prefix(character.size());
  }
  return columns;
}

/// Lines that words are added to.
class Lines {
 public:
  Lines(std::size_t width, const Widths& widths) : width_(width), widths_(widths) {}

  /// `blanks`: those before the word, which are dropped where a line begins with it.
  void add(std::string_view blanks, std::string_view word) {
    const std::size_t columns = width_of(word, widths_);
    if (column_ > 0 && column_ + blanks.size() + columns > width_) {
      start_line();
    } else {
      put(blanks, blanks.size());
    }
    while (!word.empty()) {
      const std::string_view character = first_character(word);
      const std::size_t one = widths_.of(character);
      if (column_ > 0 && column_ + one > width_) start_line();
      put(character, one);
      word.remove_prefix(character.size());
    }
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void start_line() {
    lines_.emplace_back();
    column_ = 0;
  }
  void put(std::string_view text, std::size_t columns) {
    lines_.back() += text;
    column_ += columns;
  }

  std::size_t width_;
  const Widths& widths_;
  std::size_t column_ = 0;
  std::vector<std::string> lines_{""};
};

}  // namespace

std::size_t terminal_columns(std::string_view text) { return width_of(text, Widths()); }

std::vector<std::string> lines_within(std::string_view text, std::size_t width) {
  const Widths widths;
  Lines lines(std::max<std::size_t>(width, 2), widths);
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    lines.add(text.substr(0, begin), text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  return lines.take();
}

}  // namespace rekernel
