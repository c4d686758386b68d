#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rekernel {

/// What is wrong, in one line of a message whose further lines are a compiler's: the first line,
/// and if that ends with a colon, the first error after it. "does not compile for sm_90a
/// (NVRTC_ERROR_COMPILATION): kernel.cu(1): error: identifier "b" is undefined". A message of one
/// line is its own headline.
std::string headline(std::string_view message, std::size_t max_bytes = 400);

/// The message without " for sm_90a": another target may have the same error.
std::string for_any_target(std::string message, std::string_view target);

/// The headline, and if there is more to tell all lines, marked as another's. Ends with a line
/// feed.
std::string told_message(std::string_view message);

/// What the compiler said of a program beside the assembler's report; empty if nothing.
std::string warnings_in(std::string_view log);

/// Where the assembler's report begins, which is what ends a log.
std::size_t report_begin(std::string_view log);

/// The assembler refuses too much static shared memory without a word: an error in words of a
/// compiler, with the limit, from its report; empty if nothing in it is too much.
std::string shared_memory_error(std::string_view log, std::int64_t most_bytes);

}  // namespace rekernel
