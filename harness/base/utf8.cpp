#include "harness/base/utf8.h"

#include <algorithm>
#include <cstring>

namespace rekernel {

namespace {

std::string visible(std::string_view bytes, std::size_t max_bytes, std::string_view kept) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = character_length(bytes, i);
    std::string_view character = bytes.substr(i, std::max<std::size_t>(length, 1));
    i += character.size();
    const bool stays = length == 1 && kept.find(character) != std::string_view::npos;
    if (length == 0 || (is_control(character) && !stays)) character = "?";
    if (text.size() + character.size() > max_bytes) return text + "…";
    text += character;
  }
  return text;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  constexpr std::uint64_t beyond_ascii = 0x8080808080808080;
  for (std::size_t i = 0; i < bytes.size();) {
    std::uint64_t eight = 0;
    if (i + sizeof eight <= bytes.size()) {
      std::memcpy(&eight, bytes.data() + i, sizeof eight);
      if ((eight & beyond_ascii) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u;
    };
    const unsigned lead = byte(i);
    const unsigned next = byte(i + 1);
    std::size_t length = 1;
    if (lead >= 0xC2 && lead <= 0xDF) length = 2;
    if (lead >= 0xE0 && lead <= 0xEF) length = 3;
    if (lead >= 0xF0 && lead <= 0xF4) length = 4;
    if (length == 1 && lead >= 0x80) return false;
    for (std::size_t j = 1; j < length; ++j) {
      if ((byte(i + j) & 0xC0) != 0x80) return false;
    }
    // Overlong forms, surrogates and what lies beyond U+10FFFF.
    if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
        (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F)) {
      return false;
    }
    i += length;
  }
  return true;
}

std::size_t character_length(std::string_view text, std::size_t at) {
  for (std::size_t length = 1; length <= 4 && at + length <= text.size(); ++length) {
    if (is_utf8(text.substr(at, length))) return length;
  }
  return 0;
}

std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  // The first byte says with its leading ones how many there are.
  std::uint32_t point = byte(0) & (0x7Fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3Fu);
  return point;
}

bool is_control(std::string_view character) {
  const std::uint32_t point = code_point(character);
  const auto is_within = [&](std::uint32_t first, std::uint32_t last) {
    return point >= first && point <= last;
  };
  return point < 0x20 || is_within(0x7F, 0x9F) || point == 0x61C || is_within(0x200E, 0x200F) ||
         is_within(0x2028, 0x202E) || is_within(0x2066, 0x2069);
}

std::string one_line(std::string_view bytes, std::size_t max_bytes) {
  return visible(bytes, max_bytes, "");
}

std::string visible_lines(std::string_view bytes, std::size_t max_bytes) {
  return visible(bytes, max_bytes, "\n\t");
}

std::string quoted_lines(std::string_view text, std::string_view mark) {
  std::string quoted;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    quoted += mark;
    quoted += text.substr(0, end);
    quoted += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return quoted;
}

}  // namespace rekernel
