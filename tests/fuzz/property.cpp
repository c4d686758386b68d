#include "property.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "harness/base/json.h"

namespace rekernel::fuzz {
namespace {

bool has_control_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    // U+0080 to U+009F
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      return true;
    }
  }
  return false;
}

}  // namespace

void require(bool holds, std::string_view property, std::string_view detail) {
  if (holds) return;
  std::cerr << "does not hold: " << property << (detail.empty() ? "" : ": ") << detail << std::endl;
  std::abort();
}

void require_one_line(std::string_view message) {
  require(!message.empty(), "a message says something");
  require(is_utf8(message), "a message is UTF-8", message);
  require(!has_control_character(message), "a message has no control characters", message);
}

void require_error(const Error& error, std::string_view place) {
  require_one_line(error.message);
  require(error.message.starts_with(place), "a message names the place first", error.message);
}

}  // namespace rekernel::fuzz
