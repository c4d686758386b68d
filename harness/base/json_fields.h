#pragma once

#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/text.h"

/// A struct's fields in JSON, in one list from which it is written and read:
///
///   namespace percent_json {
///   using namespace json_fields;
///   constexpr std::tuple fields{field("value", &Percent::value, real),
///                               field("note", &Percent::note, text, unless_empty)};
///   }
///   json = object_of(percent, percent_json::fields);
///   percent = read_object<Percent>(reader, percent_json::fields);
///
/// What a field's value looks like says a format: a type with `write(value)`, which returns JSON,
/// and `read(reader, into)`. Keys are written in the list's order; a key that the list does not
/// have is an error of the reader.
namespace rekernel::json_fields {

enum class Presence {
  always,        ///< written and required
  unless_empty,  ///< left out where it is empty or 0, and may be absent
  newer,         ///< always written; records from before it was kept do not have it
};
template <Presence presence>
struct PresenceIs {};
inline constexpr PresenceIs<Presence::always> always;
inline constexpr PresenceIs<Presence::unless_empty> unless_empty;
inline constexpr PresenceIs<Presence::newer> newer;

template <class Struct, class... Fields>
boost::json::object object_of(const Struct& from, const std::tuple<Fields...>& fields);
template <class Struct, class... Fields>
void read_fields(JsonReader reader, Struct& into, const std::tuple<Fields...>& fields);
template <class Struct, class... Fields>
Struct read_object(JsonReader reader, const std::tuple<Fields...>& fields);

template <class Struct, class Member, class Format, Presence presence>
struct Field {
  std::string_view key;
  Member Struct::*member;
  Format format;
};

template <class Struct, class Member, class Format, Presence presence = Presence::always>
constexpr Field<Struct, Member, Format, presence> field(std::string_view key,
                                                        Member Struct::*member, Format format,
                                                        PresenceIs<presence> = {}) {
  return {key, member, format};
}

/// Several keys that belong together, or one that follows rules of its own.
template <class Write, class Read>
struct Part {
  Write write;  ///< (object, struct)
  Read read;    ///< (reader of the object, struct)
};
template <class Write, class Read>
Part(Write, Read) -> Part<Write, Read>;

/// An object whose fields are the struct's own.
template <class Fields>
struct Within {
  std::string_view key;
  Fields fields;
};
template <class Fields>
Within(std::string_view, Fields) -> Within<Fields>;

template <class T>
bool is_empty(const std::optional<T>& value) {
  return !value;
}
template <class T>
bool is_empty(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value == T{};
  } else {
    return value.empty();
  }
}

template <class Format, class T>
boost::json::value written(const Format& format, const T& value) {
  return format.write(value);
}
template <class Format, class T>
boost::json::value written(const Format& format, const std::optional<T>& value) {
  return format.write(*value);
}
template <class Format, class T>
void read_into(const Format& format, JsonReader reader, T& into) {
  format.read(std::move(reader), into);
}
template <class Format, class T>
void read_into(const Format& format, JsonReader reader, std::optional<T>& into) {
  format.read(std::move(reader), into.emplace());
}

template <class Struct, class Owner, class Member, class Format, Presence presence>
void write_field(boost::json::object& json, const Struct& from,
                 const Field<Owner, Member, Format, presence>& one) {
  const Member& value = from.*one.member;
  if constexpr (presence == Presence::unless_empty) {
    if (is_empty(value)) return;
  }
  json[one.key] = written(one.format, value);
}
template <class Struct, class Write, class Read>
void write_field(boost::json::object& json, const Struct& from, const Part<Write, Read>& one) {
  one.write(json, from);
}

template <class Struct, class Fields>
void write_field(boost::json::object& json, const Struct& from, const Within<Fields>& one) {
  json[one.key] = object_of(from, one.fields);
}

template <class Struct, class Owner, class Member, class Format, Presence presence>
void read_field(JsonReader& reader, Struct& into,
                const Field<Owner, Member, Format, presence>& one) {
  if constexpr (presence == Presence::always) {
    read_into(one.format, reader.required(one.key), into.*one.member);
  } else if (auto value = reader.optional(one.key)) {
    read_into(one.format, std::move(*value), into.*one.member);
  }
}
template <class Struct, class Write, class Read>
void read_field(JsonReader& reader, Struct& into, const Part<Write, Read>& one) {
  one.read(reader, into);
}

template <class Struct, class Fields>
void read_field(JsonReader& reader, Struct& into, const Within<Fields>& one) {
  read_fields(reader.required(one.key), into, one.fields);
}

template <class Struct, class... Fields>
boost::json::object object_of(const Struct& from, const std::tuple<Fields...>& fields) {
  boost::json::object json;
  json.reserve(sizeof...(Fields));
  std::apply([&](const auto&... one) { (write_field(json, from, one), ...); }, fields);
  return json;
}

template <class Struct, class... Fields>
void read_fields(JsonReader reader, Struct& into, const std::tuple<Fields...>& fields) {
  std::apply([&](const auto&... one) { (read_field(reader, into, one), ...); }, fields);
  reader.no_other_keys();
}

template <class Struct, class... Fields>
Struct read_object(JsonReader reader, const std::tuple<Fields...>& fields) {
  Struct into;
  read_fields(std::move(reader), into, fields);
  return into;
}

/// The number of the layout, the only one that is read.
constexpr auto schema(std::int64_t number) {
  return Part{[number](boost::json::object& json, const auto&) { json["schema"] = number; },
              [number](JsonReader& reader, const auto&) {
                reader.required("schema").integer(number, number);
              }};
}

// Formats.

struct Text {
  std::size_t max_length = 1u << 20;

  boost::json::value write(const std::string& value) const { return boost::json::value(value); }
  void read(JsonReader reader, std::string& into) const { into = reader.string(max_length); }
};
inline constexpr Text text;

struct Flag {
  boost::json::value write(bool value) const { return value; }
  void read(JsonReader reader, bool& into) const { into = reader.boolean(); }
};
inline constexpr Flag flag;

/// A whole number, an enumerator by its number, or a duration as the number of its units.
struct Whole {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();

  template <class T>
  boost::json::value write(const T& value) const {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      return static_cast<std::int64_t>(value);
    } else {
      return static_cast<std::int64_t>(value.count());
    }
  }
  template <class T>
  void read(JsonReader reader, T& into) const {
    into = static_cast<T>(reader.integer(min, max));
  }
};
inline constexpr Whole count;

/// JSON has no infinity: null stands for it.
struct Real {
  boost::json::value write(double value) const {
    if (std::isfinite(value)) return value;
    return nullptr;
  }
  void read(JsonReader reader, double& into) const {
    into = reader.raw().is_null() ? std::numeric_limits<double>::infinity() : reader.real();
  }
};
inline constexpr Real real;

/// A number as text, since doubles do not survive every JSON library, and numbers of 64 bits no
/// signed one. `printf_format` is a floating-point number's ("%.4g").
struct NumberText {
  const char* printf_format = nullptr;

  template <class T>
  boost::json::value write(T value) const {
    if constexpr (std::is_floating_point_v<T>) {
      return boost::json::value(printed(printf_format, value));
    } else {
      return boost::json::value(std::to_string(value));
    }
  }
  template <class T>
  void read(JsonReader reader, T& into) const {
    constexpr std::size_t longest = 32;
    const std::string digits = reader.string(longest);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      reader.expect("a number as text");
    }
  }
};

/// An enumerator by its name.
template <class Enum>
struct Named {
  const char* (*name)(Enum);
  std::optional<Enum> (*find)(std::string_view);
  const char* expected;  ///< "a status"

  boost::json::value write(Enum value) const { return boost::json::value(name(value)); }
  void read(JsonReader reader, Enum& into) const {
    if (const auto found = find(reader.string())) {
      into = *found;
    } else {
      reader.expect(expected);
    }
  }
};

template <class Format>
struct List {
  Format format;
  std::size_t min_size = 0;
  std::size_t max_size = 1u << 20;

  template <class T>
  boost::json::value write(const std::vector<T>& values) const {
    boost::json::array array;
    array.reserve(values.size());
    for (const T& value : values) array.push_back(format.write(value));
    return array;
  }
  template <class T>
  void read(JsonReader reader, std::vector<T>& into) const {
    for (JsonReader& one : reader.array(min_size, max_size)) format.read(one, into.emplace_back());
  }
};
template <class Format, class... Sizes>
List(Format, Sizes...) -> List<Format>;

/// An object with free keys, in its order.
template <class Format>
struct Entries {
  Format format;

  template <class T>
  boost::json::value write(const std::vector<std::pair<std::string, T>>& entries) const {
    boost::json::object json;
    for (const auto& [key, value] : entries) json[key] = format.write(value);
    return json;
  }
  template <class T>
  void read(JsonReader reader, std::vector<std::pair<std::string, T>>& into) const {
    for (auto& [key, value] : reader.entries()) {
      format.read(value, into.emplace_back(key, T{}).second);
    }
  }
};
template <class Format>
Entries(Format) -> Entries<Format>;

struct TextMap {
  std::size_t max_length = 1u << 20;

  boost::json::value write(const std::map<std::string, std::string>& value) const {
    return boost::json::value_from(value);
  }
  void read(JsonReader reader, std::map<std::string, std::string>& into) const {
    into = reader.string_map(max_length);
  }
};

/// A struct that has a list of its own.
template <class Fields>
struct Nested {
  Fields fields;

  template <class T>
  boost::json::value write(const T& value) const {
    return object_of(value, fields);
  }
  template <class T>
  void read(JsonReader reader, T& into) const {
    into = read_object<T>(std::move(reader), fields);
  }
};
template <class Fields>
Nested(Fields) -> Nested<Fields>;

/// What has a to_json and this function.
template <class T>
struct By {
  T (*from_json)(JsonReader);

  boost::json::value write(const T& value) const { return to_json(value); }
  void read(JsonReader reader, T& into) const { into = from_json(std::move(reader)); }
};
template <class T>
By(T (*)(JsonReader)) -> By<T>;

}  // namespace rekernel::json_fields
