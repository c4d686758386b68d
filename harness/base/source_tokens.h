#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rekernel {

/// What a C++ source says: its tokens, each with a zero byte after it. Comments, white space
/// between tokens and lines of #include are left out; literals, raw strings too, are as they stand.
/// Two sources with the same tokens compile to the same program, up to the headers and __LINE__.
std::string cpp_tokens(std::string_view source);

/// The same of a Python source: its lines without comments, trailing blanks and empty lines.
/// Indentation and what lies in strings are as they stand.
std::string python_tokens(std::string_view source);

/// The same of a JSON text: its tokens, each with a zero byte after it, without commas, and
/// without the entries of the outermost object that are called as in `without`. Texts that are not
/// JSON have tokens too.
std::string json_tokens(std::string_view text, std::span<const std::string_view> without);

}  // namespace rekernel
