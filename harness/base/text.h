#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The value by a printf format for one double ("%.3g").
std::string printed(const char* format, double value);

/// "1 row", "2 rows".
std::string counted(std::size_t number, const std::string& noun);

/// "about 40 s left", "about 3 min left", from the time that `done` of `total` equal parts took.
/// Empty before anything is done, behind the end, and within the first two seconds, when the first
/// parts say little of the others.
std::string time_left(std::chrono::nanoseconds elapsed, std::size_t done, std::size_t total);

}  // namespace rekernel
