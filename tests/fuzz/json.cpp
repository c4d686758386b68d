#include "harness/base/json.h"

#include <boost/json.hpp>

#include "property.h"
#include "replay/trajectory/event.h"
#include "targets.h"

namespace rekernel::fuzz {
namespace {

bool has_reals(const boost::json::value& value) {
  if (value.is_double()) return true;
  if (const auto* array = value.if_array()) {
    return std::any_of(array->begin(), array->end(), has_reals);
  }
  const auto* object = value.if_object();
  return object && std::any_of(object->begin(), object->end(),
                               [](const auto& member) { return has_reals(member.value()); });
}

void check_value(std::string_view bytes) {
  const Result<boost::json::value> value = parse_json(bytes, "f.json");
  if (!value) return require_error(value.error(), "f.json: line ");
  const std::string text = pretty_json(*value);
  const Result<boost::json::value> again = parse_json(text, "f.json");
  require(again.ok(), "what is written is accepted", text);
  require(*again == *value, "writing loses nothing", text);
  require(pretty_json(*again) == text, "it is written the same again", text);
  if (has_reals(*value)) return;
  const std::string line = canonical_json(*value);
  require(line.find('\n') == std::string::npos, "an event is one line", line);
  const Result<boost::json::value> event = parse_json(line, "f.json");
  require(event.ok() && *event == *value, "an event loses nothing", line);
  require(canonical_json(*event) == line, "an event is written the same again", line);
}

/// Any bytes survive being put into an event.
void check_text(std::string_view bytes) {
  boost::json::object event;
  put_text(event, "text", bytes);
  const Result<boost::json::value> read = parse_json(canonical_json(event), "f.json");
  require(read.ok(), "an event is JSON");
  JsonReader reader("f.json", *read);
  require(take_text(reader, "text") == bytes, "an event keeps its text");
  require(!reader.error(), "an event's text is read");
}

void check_shortening(std::string_view bytes) {
  for (const std::size_t limit : {0, 5, 64}) {
    const std::string text = printable(bytes, limit);
    require(is_utf8(text), "what is printable is UTF-8");
    require(text.size() <= limit + 3, "what is shortened is short");
    require(printable(text, limit) == text, "what is printable stays as it is", text);
    const std::string line = one_line(bytes, limit);
    if (!line.empty()) require_one_line(line);
    require(one_line(line, limit) == line, "one line stays as it is", line);
  }
}

}  // namespace

void fuzz_json(std::string_view bytes) {
  check_value(bytes);
  check_text(bytes);
  check_shortening(bytes);
}

}  // namespace rekernel::fuzz
