#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The value by a printf format for one double ("%.3g").
std::string printed(const char* format, double value);

}  // namespace rekernel
