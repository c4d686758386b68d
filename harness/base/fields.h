#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

/// Bytes in parts, as our processes send them to each other.
using Fields = std::vector<std::string>;

/// Appends a field with its length before it: two different lists of fields never give the same
/// bytes.
void append_field(std::string& bytes, std::string_view field);
/// Takes one field from the front; nothing, and `bytes` unchanged, if it is not there in whole.
std::optional<std::string> take_field(std::string_view& bytes);

std::string joined_fields(const Fields& fields);
/// Nothing if the bytes end within a field.
std::optional<Fields> split_fields(std::string_view bytes);

}  // namespace rekernel
