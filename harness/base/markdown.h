#pragma once

#include <string>
#include <string_view>

namespace rekernel {

/// Text from a record as Markdown that shows it and no more: no HTML, no link, no picture, no code
/// and no second line comes of it. Control characters are made visible.
std::string markdown_text(std::string_view text);

/// The same of several lines, each by itself.
std::string markdown_lines(std::string_view text);

/// The same as code, of `max_bytes` at most; empty for an empty text.
std::string markdown_code(std::string_view text, std::size_t max_bytes = 600);

}  // namespace rekernel
