#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rekernel {

/// Whether the bytes are well-formed UTF-8, so that they can become a JSON string.
bool is_utf8(std::string_view bytes);

/// The length of the UTF-8 character at `at`; 0 if there is none.
std::size_t character_length(std::string_view text, std::size_t at);

/// The number of a UTF-8 character, which has to be one.
std::uint32_t code_point(std::string_view character);

/// Whether a terminal may take the UTF-8 character for a command: below U+0020, and U+007F to
/// U+009F; or may show what follows in another order or on another line: U+061C, U+200E, U+200F,
/// U+2028 to U+202E, U+2066 to U+2069.
bool is_control(std::string_view character);

/// The bytes as part of a one-line message: control characters and what is not UTF-8 become "?";
/// after `max_bytes`, "…" stands for the rest.
std::string one_line(std::string_view bytes, std::size_t max_bytes);

/// The same of a text with lines: line feeds and tabs stay.
std::string visible_lines(std::string_view bytes, std::size_t max_bytes);

/// The lines of others' text each with a mark before it, so that none can be taken for a line of
/// ours. Ends with a line feed; empty for an empty text.
std::string quoted_lines(std::string_view text, std::string_view mark = "  | ");

}  // namespace rekernel
