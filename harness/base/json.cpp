#include "harness/base/json.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::size_t max_depth = 32;
constexpr std::size_t line_width = 100;
constexpr std::size_t shown_length = 60;

/// A value as part of a one-line message.
std::string shown(const json::value& value);

/// Serialized JSON with control characters beyond ASCII as "\u0085", and "?" for what is no UTF-8.
std::string escaped_controls(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    const std::string_view character = text.substr(i, std::max<std::size_t>(length, 1));
    i += character.size();
    if (length == 0) {
      escaped += '?';
    } else if (is_control(character)) {
      const std::uint32_t point = code_point(character);
      escaped += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) escaped += digits[point >> shift & 15];
    } else {
      escaped += character;
    }
  }
  return escaped;
}

/// Builds the value while it refuses what Boost's own handler lets pass: repeated keys, of which it
/// would keep the last, and doubles that it would round wrongly in the last place.
struct StrictHandler {
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  json::value_stack values;
  std::vector<std::set<std::string, std::less<>>> keys;  ///< of the objects that are open
  std::string text;                                      ///< of the token that is being read
  std::string problem;                                   ///< what we refuse ourselves

  using Status = boost::system::error_code;

  bool refuse(const std::string& why, Status& status) {
    problem = why;
    status = json::error::syntax;
    return false;
  }

  bool on_document_begin(Status&) {
    values.reset();
    return true;
  }
  bool on_document_end(Status&) { return true; }
  bool on_array_begin(Status&) { return true; }
  bool on_array_end(std::size_t size, Status&) {
    values.push_array(size);
    return true;
  }
  bool on_object_begin(Status&) {
    keys.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t size, Status&) {
    keys.pop_back();
    values.push_object(size);
    return true;
  }
  bool on_part(json::string_view part) {
    text.append(part.data(), part.size());
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, Status&) { return on_part(part); }
  bool on_key(json::string_view part, std::size_t, Status& status) {
    on_part(part);
    if (!keys.back().insert(text).second) {
      return refuse("the key " + shown(json::string(text)) + " appears twice", status);
    }
    values.push_key(text);
    text.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, Status&) { return on_part(part); }
  bool on_string(json::string_view part, std::size_t, Status&) {
    on_part(part);
    values.push_string(text);
    text.clear();
    return true;
  }
  bool on_number_part(json::string_view part, Status&) { return on_part(part); }
  bool on_int64(std::int64_t value, json::string_view, Status&) {
    values.push_int64(value);
    text.clear();
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, Status&) {
    values.push_uint64(value);
    text.clear();
    return true;
  }
  bool on_double(double, json::string_view part, Status& status) {
    on_part(part);
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
      return refuse("a number out of range", status);
    }
    values.push_double(value);
    text.clear();
    return true;
  }
  bool on_bool(bool value, Status&) {
    values.push_bool(value);
    return true;
  }
  bool on_null(Status&) {
    values.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, Status&) { return true; }
  bool on_comment(json::string_view, Status&) { return true; }
};

std::string number_text(double value) {
  if (!std::isfinite(value)) throw std::logic_error("JSON cannot hold a number that is not finite");
  const double magnitude = std::abs(value);
  const bool plain = value == 0 || (magnitude >= 1e-6 && magnitude < 1e17);
  std::array<char, 64> buffer;
  const auto [end, code] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  if (code != std::errc()) throw std::logic_error("a number is too long for its buffer");
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

/// Most texts hold nothing to escape.
/// A JSON string; what a terminal may take for a command is escaped, within ASCII and beyond.
std::string string_text(json::string_view value) {
  const bool ascii = std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\';
  });
  if (!ascii) return escaped_controls(json::serialize(json::string(value)));
  std::string text;
  text.reserve(value.size() + 2);
  text += '"';
  text += value;
  text += '"';
  return text;
}

std::string scalar_text(const json::value& value) {
  if (const auto* text = value.if_string()) return string_text(*text);
  if (const auto* integer = value.if_int64()) return std::to_string(*integer);
  return value.is_double() ? number_text(value.as_double()) : json::serialize(value);
}

/// Appends the value on one line; gives up, with false, once `text` is longer than `limit`.
bool append_line(std::string& text, const json::value& value, std::size_t limit) {
  if (text.size() > limit) return false;
  if (const auto* array = value.if_array()) {
    text += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) text += ", ";
      if (!append_line(text, (*array)[i], limit)) return false;
    }
    text += ']';
  } else if (const auto* object = value.if_object()) {
    text += '{';
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) text += ", ";
      first = false;
      text += string_text(key) + ": ";
      if (!append_line(text, member, limit)) return false;
    }
    text += '}';
  } else {
    text += scalar_text(value);
  }
  return text.size() <= limit;
}

/// Numbers by the dozen (samples, say) fill lines instead of having one each.
void append_filled(std::string& text, const json::array& numbers, const std::string& inner) {
  std::size_t width = 0;
  for (const json::value& number : numbers) {
    const std::string word = scalar_text(number) + (&number == &numbers.back() ? "" : ",");
    if (width > 0 && width + 1 + word.size() <= line_width) {
      text += " " + word;
      width += 1 + word.size();
    } else {
      text += (width > 0 ? "\n" : "") + inner + word;
      width = inner.size() + word.size();
    }
  }
}

/// Appends the value after `prefix_width` columns of its first line.
void append_pretty(std::string& text, const json::value& value, std::size_t indent,
                   std::size_t prefix_width) {
  if (!value.is_structured()) {
    text += scalar_text(value);
    return;
  }
  // One column is left for the comma after it.
  std::string line;
  if (prefix_width < line_width && append_line(line, value, line_width - 1 - prefix_width)) {
    text += line;
    return;
  }
  const std::string inner(indent + 2, ' ');
  bool first = true;
  if (const auto* array = value.if_array();
      array && std::all_of(array->begin(), array->end(),
                           [](const auto& entry) { return entry.is_number(); })) {
    text += "[\n";
    append_filled(text, *array, inner);
    text += "\n" + std::string(indent, ' ') + "]";
  } else if (array) {
    text += "[\n";
    for (const auto& entry : *array) {
      if (!first) text += ",\n";
      first = false;
      text += inner;
      append_pretty(text, entry, indent + 2, inner.size());
    }
    text += "\n" + std::string(indent, ' ') + "]";
  } else {
    text += "{\n";
    for (const auto& [key, member] : value.get_object()) {
      if (!first) text += ",\n";
      first = false;
      const std::string prefix = inner + string_text(key) + ": ";
      text += prefix;
      append_pretty(text, member, indent + 2, prefix.size());
    }
    text += "\n" + std::string(indent, ' ') + "}";
  }
}

std::string shown(const json::value& value) {
  std::string text;
  append_line(text, value, 4 * shown_length);
  return one_line(text, shown_length);
}

const json::value null_value;

}  // namespace

Result<json::value> parse_json(std::string_view text, const std::string& where) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<StrictHandler> parser(options);
  boost::system::error_code status;
  // Line by line, so that an error knows its line; no JSON token spans two.
  std::size_t line = 0;
  for (std::size_t begin = 0; begin <= text.size() && !status;) {
    ++line;
    const std::size_t newline = text.find('\n', begin);
    const bool last = newline == std::string_view::npos;
    const std::size_t size = (last ? text.size() : newline + 1) - begin;
    const std::size_t used = parser.write_some(!last, text.data() + begin, size, status);
    if (!status && used < size) status = json::error::extra_data;
    begin += size;
    if (last) break;
  }
  if (status) {
    const std::string& problem = parser.handler().problem;
    return Error{where + ": line " + std::to_string(line) +
                 ": not valid JSON: " + (problem.empty() ? status.message() : problem)};
  }
  return parser.handler().values.release();
}

Result<boost::json::value> read_json_file(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse_json(*text, path.string());
}

std::string pretty_json(const json::value& value) {
  std::string text;
  append_pretty(text, value, 0, 0);
  return text + "\n";
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && text.size() <= 64 && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// An object or array that is read. Places are put together only where something is wrong: most of
/// a reader's time went into their texts.
struct JsonReader::Scope {
  std::string where;              ///< the root's place
  std::shared_ptr<Scope> around;  ///< none for the root
  Step step;                      ///< from there
  Scope* root;
  std::optional<Error> first_error;  ///< the root's
  std::vector<std::string> asked;

  std::string place() const { return around ? around->place_of(step) : where; }
  std::string place_of(const Step& inner) const {
    if (inner.to == Step::To::entry) return place() + "[" + std::to_string(inner.index) + "]";
    return place() + (around ? "." : ": ") +
           (is_identifier(inner.key) ? std::string(inner.key) : shown(json::string(inner.key)));
  }
};

JsonReader::JsonReader(std::string where, const json::value& value)
    : value_(&value), scope_(std::make_shared<Scope>()) {
  scope_->where = std::move(where);
  scope_->root = scope_.get();
}

JsonReader::JsonReader(const json::value& value, std::shared_ptr<Scope> around, Step step)
    : value_(&value), scope_(std::move(around)), step_(step) {
  if (!value.is_structured()) return;
  auto own = std::make_shared<Scope>();
  own->root = scope_->root;
  own->step = step;
  own->around = std::move(scope_);
  scope_ = std::move(own);
}

std::string JsonReader::place() const {
  const bool itself = value_->is_structured() || step_.to == Step::To::itself;
  return itself ? scope_->place() : scope_->place_of(step_);
}

bool JsonReader::failed() const { return scope_->root->first_error.has_value(); }
std::optional<Error> JsonReader::error() const { return scope_->root->first_error; }

const json::object* JsonReader::object_or_fail() {
  if (!value_->is_object()) expect("an object");
  return value_->if_object();
}

/// The value of a key that is asked for now; nullptr if there is none.
const json::value* JsonReader::find(std::string_view key, Step& step) {
  const json::object* object = object_or_fail();
  if (!object) return nullptr;
  scope_->asked.emplace_back(key);
  const auto member = object->find(key);
  if (member == object->end()) return nullptr;
  step = {Step::To::member, member->key(), 0};
  return &member->value();
}

JsonReader JsonReader::required(std::string_view key) {
  Step step;
  const json::value* value = find(key, step);
  if (!value) fail("the key \"" + std::string(key) + "\" is missing");
  return {value ? *value : null_value, scope_, step};
}

std::optional<JsonReader> JsonReader::optional(std::string_view key) {
  Step step;
  const json::value* value = find(key, step);
  if (!value) return std::nullopt;
  return JsonReader(*value, scope_, step);
}

std::string JsonReader::optional_string(std::string_view key) {
  auto field = optional(key);
  return field ? field->string() : std::string();
}

bool JsonReader::has(std::string_view key) const {
  const json::object* object = value_->if_object();
  return object && object->contains(key);
}

void JsonReader::no_other_keys() {
  const json::object* object = object_or_fail();
  if (!object) return;
  for (const auto& [key, member] : *object) {
    const std::vector<std::string>& asked = scope_->asked;
    if (std::find(asked.begin(), asked.end(), std::string_view(key)) != asked.end()) continue;
    fail("unknown key " + shown(json::string(key)) + "; known: " + joined(asked));
    return;
  }
}

std::vector<JsonReader> JsonReader::array(std::size_t min_size, std::size_t max_size) {
  std::vector<JsonReader> readers;
  const json::array* array = value_->if_array();
  if (!array) {
    expect("an array");
    return readers;
  }
  if (array->size() < min_size || array->size() > max_size) {
    fail("expected " +
         (min_size == max_size ? std::to_string(min_size)
                               : std::to_string(min_size) + " to " + std::to_string(max_size)) +
         " entries, got " + std::to_string(array->size()));
    return readers;
  }
  readers.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    readers.push_back(JsonReader((*array)[i], scope_, {Step::To::entry, {}, i}));
  }
  return readers;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::entries(std::size_t max_size) {
  std::vector<std::pair<std::string, JsonReader>> result;
  const json::object* object = object_or_fail();
  if (!object) return result;
  if (object->size() > max_size) {
    fail("expected at most " + std::to_string(max_size) + " entries, got " +
         std::to_string(object->size()));
    return result;
  }
  for (const auto& [key, member] : *object) {
    scope_->asked.emplace_back(key);
    result.emplace_back(std::string(key), JsonReader(member, scope_, {Step::To::member, key, 0}));
  }
  return result;
}

std::int64_t JsonReader::integer(std::int64_t min, std::int64_t max) {
  const std::int64_t* value = value_->if_int64();
  if (value && *value >= min && *value <= max && !failed()) return *value;
  expect("an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return min;
}

double JsonReader::real() {
  if (!value_->is_number()) expect("a number");
  return failed() ? 0.0 : value_->to_number<double>();
}

bool JsonReader::boolean() {
  if (!value_->is_bool()) expect("true or false");
  return !failed() && value_->get_bool();
}

std::string JsonReader::string(std::size_t max_length) {
  const json::string* text = value_->if_string();
  if (!text) {
    expect("a string");
  } else if (text->size() > max_length) {
    fail("expected at most " + std::to_string(max_length) + " bytes of text, got " +
         std::to_string(text->size()));
  } else if (text->find('\0') != json::string::npos) {
    fail("the text contains a NUL character");
  }
  return failed() ? std::string() : std::string(*text);
}

std::string JsonReader::identifier() {
  const json::string* text = value_->if_string();
  if (!text || !is_identifier(*text)) {
    expect("an identifier (letters, digits and _, at most 64)");
  }
  return failed() ? std::string() : std::string(*text);
}

std::vector<std::string> JsonReader::strings(std::size_t max_size, std::size_t max_length) {
  std::vector<std::string> texts;
  for (JsonReader& entry : array(0, max_size)) texts.push_back(entry.string(max_length));
  return texts;
}

std::map<std::string, std::string> JsonReader::string_map(std::size_t max_length) {
  std::map<std::string, std::string> texts;
  for (auto& [key, value] : entries()) texts[key] = value.string(max_length);
  return texts;
}

bool JsonReader::is_string() const { return value_->is_string(); }
bool JsonReader::is_object() const { return value_->is_object(); }
bool JsonReader::is_integer() const { return value_->is_int64() || value_->is_uint64(); }

void JsonReader::fail(const std::string& problem) {
  if (!failed()) scope_->root->first_error = Error{place() + ": " + problem};
}

void JsonReader::expect(const std::string& expected) {
  if (!failed()) fail("expected " + expected + ", got " + shown(*value_));
}

}  // namespace rekernel
