#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Lines that people read are no longer than this.
inline constexpr std::size_t page_columns = 100;

/// Display width of UTF-8 text: one column a code point is right for everything printed here.
std::size_t columns_of(std::string_view text);

/// What becomes of a word that is longer than a line: paths and addresses stay whole to be copied,
/// cells of tables keep their width.
enum class LongWords { whole, broken };

/// The text in lines of at most `columns` columns, broken at blanks where that is possible; lines
/// after the first begin with `indent` blanks. Line breaks of the text stay. As it is where
/// `columns` leaves no room; 0: any length.
std::string wrapped(std::string_view text, std::size_t columns = page_columns,
                    std::size_t indent = 0, LongWords long_words = LongWords::whole);

/// The value by a printf format for one double ("%.3g").
std::string printed(const char* format, double value);

/// Bytes as pairs of lower-case hexadecimal digits, and back; nothing for other texts.
std::string hexadecimal(std::string_view bytes);
std::optional<std::string> from_hexadecimal(std::string_view text);

/// "0.25 s", "90 s": exact to a millisecond.
std::string seconds_text(std::chrono::milliseconds time);

/// The word that somebody may have meant: the one that fewest changed, missing, added or swapped
/// characters lead to. Empty where that is more than a third of the longer word.
std::string nearest(std::string_view word, const std::vector<std::string>& words);

/// "1 row", "2 rows".
std::string counted(std::size_t number, const std::string& noun);

}  // namespace rekernel
