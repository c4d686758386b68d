#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

/// The columns that a terminal gives UTF-8 text: two for an East Asian wide character or an emoji,
/// none for a combining mark, by the C library's tables for C.UTF-8 (wcwidth). One a code point on
/// a machine without that locale. Control characters count as one: show none.
std::size_t terminal_columns(std::string_view text);

/// The text in lines of at most `width` columns (at least 2, so that every character fits), broken
/// at blanks where that is possible, else within a word. Never empty.
std::vector<std::string> lines_within(std::string_view text, std::size_t width);

}  // namespace rekernel
