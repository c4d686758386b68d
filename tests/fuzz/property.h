#pragma once

#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel::fuzz {

/// Ends the program with a message unless a property holds: that is how a fuzzer learns of it.
void require(bool holds, std::string_view property, std::string_view detail = "");

/// Ends the program unless the text can stand in a one-line message: UTF-8, not empty, without
/// control characters, those beyond ASCII included.
void require_one_line(std::string_view message);

/// The same, and the message names the place first.
void require_error(const Error& error, std::string_view place);

}  // namespace rekernel::fuzz
