#pragma once

#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// What follows a base URL where chat completions are asked for.
inline constexpr std::string_view completions_path = "/chat/completions";

/// A header of every request, with its value.
struct HeaderLine {
  std::string name;
  std::string value;
  bool secret = false;  ///< out of an environment variable, or named like one that holds a key
};

/// "1.25": digits, with a point among them or not.
bool is_price(std::string_view text);
bool has_line_break(const std::string& text);
std::string without_slashes_behind(std::string address);
/// The value with "$NAME" and "${NAME}" replaced by what the environment holds; "$$" is a dollar.
Result<HeaderLine> header_line(const std::string& name, const std::string& given);
/// Whether it is PEM with a certificate, and with nothing that cannot be read.
bool holds_certificates(const std::string& text);
/// An object without the members that the search writes itself, as one text.
Result<std::string> checked_body(const std::string& text, const std::string& place);

}  // namespace rekernel
