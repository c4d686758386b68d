#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The text in lines of at most `columns` characters, broken at blanks where that is possible;
/// lines behind the first begin with `indent` blanks. Line breaks of the text stay.
std::string wrapped(std::string_view text, std::size_t columns = 100, std::size_t indent = 0);

/// The value by a printf format for one double ("%.3g").
std::string printed(const char* format, double value);

}  // namespace rekernel
