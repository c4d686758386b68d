#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rekernel {

/// RFC 4648, padded, in one line.
std::string base64(std::string_view bytes);
/// Nothing unless the text is exactly what base64() makes of some bytes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace rekernel
