#include "replay/trajectory/event.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <stdexcept>

#include "harness/base/base64.h"
#include "harness/base/files.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::size_t max_text_bytes = std::size_t{64} << 20;

void append_string(std::string& text, std::string_view value) {
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  text += '"';
  while (!value.empty()) {
    const auto special = std::find_if_not(value.begin(), value.end(), is_plain);
    text.append(value.begin(), special);
    value.remove_prefix(static_cast<std::size_t>(special - value.begin()));
    if (value.empty()) break;
    const char c = value.front();
    const auto byte = static_cast<unsigned char>(c);
    value.remove_prefix(1);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\r') {
      text += "\\r";
    } else {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      text += escape.data();
    }
  }
  text += '"';
}

void append_value(std::string& text, const json::value& value);

void append_object(std::string& text, const json::object& object, std::string_view without = "") {
  text += '{';
  bool first = true;
  for (const auto& [key, member] : object) {
    if (!without.empty() && key == without) continue;
    if (!first) text += ',';
    first = false;
    append_string(text, key);
    text += ':';
    append_value(text, member);
  }
  text += '}';
}

void append_value(std::string& text, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      text += "null";
      break;
    case json::kind::bool_:
      text += value.get_bool() ? "true" : "false";
      break;
    case json::kind::int64:
      text += std::to_string(value.get_int64());
      break;
    case json::kind::uint64:
      text += std::to_string(value.get_uint64());
      break;
    case json::kind::double_:
      throw std::logic_error("an event cannot hold a floating-point number");
    case json::kind::string:
      append_string(text, value.get_string());
      break;
    case json::kind::array: {
      text += '[';
      bool first = true;
      for (const json::value& entry : value.get_array()) {
        if (!first) text += ',';
        first = false;
        append_value(text, entry);
      }
      text += ']';
      break;
    }
    case json::kind::object:
      append_object(text, value.get_object());
      break;
  }
}

}  // namespace

std::string canonical_json(const json::value& value) {
  std::string text;
  append_value(text, value);
  return text;
}

std::string canonical_json(const json::object& object, std::string_view without) {
  std::string text;
  text.reserve(1024);
  append_object(text, object, without);
  return text;
}

std::string chain_start() { return sha256_hex("rekernel trajectory 1"); }

std::string next_chain(const std::string& previous, const std::string& canonical_event) {
  return sha256_hex(previous + canonical_event);
}

std::string event_line(const std::string& canonical_event, const std::string& chain) {
  return canonical_event.substr(0, canonical_event.size() - 1) + ",\"chain\":\"" + chain + "\"}\n";
}

void put_text(json::object& event, const std::string& key, std::string_view bytes) {
  if (is_utf8(bytes) && bytes.find('\0') == std::string_view::npos) {
    event[key] = bytes;
  } else {
    event[key + "_base64"] = base64(bytes);
  }
}

std::string take_text(JsonReader& event, const std::string& key) {
  if (!event.has(key + "_base64")) return event.required(key).string(max_text_bytes);
  JsonReader reader = event.required(key + "_base64");
  auto bytes = from_base64(reader.string(max_text_bytes));
  if (!bytes) reader.fail("not valid base64");
  return bytes.value_or("");
}

std::string event_title(const json::object& event) {
  std::string title;
  for (const char* key : {"event", "id"}) {
    const json::value* value = event.if_contains(key);
    if (value && value->is_string()) {
      title += (title.empty() ? "" : " ") + one_line(value->get_string(), 64);
    }
  }
  return title.empty() ? "an event without a name" : title;
}

bool is_event(const json::object& event, std::string_view kind, std::string_view id) {
  const auto is = [&](const char* key, std::string_view expected) {
    const json::value* value = event.if_contains(key);
    return value && value->is_string() && value->get_string() == expected;
  };
  const json::value* own = event.if_contains("id");
  return is("event", kind) && (id.empty() ? !own || !own->is_string() : is("id", id));
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string printable(std::string_view bytes, std::size_t max_bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size() && text.size() <= max_bytes + 4;) {
    const std::size_t length = character_length(bytes, i);
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const bool control = byte < 0x20 && byte != '\n' && byte != '\t';
    if (length == 0 || control) {
      text += '?';
    } else {
      text += bytes.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return shortened(text, max_bytes);
}

std::int64_t estimated_tokens(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 3) / 4);
}

}  // namespace rekernel
