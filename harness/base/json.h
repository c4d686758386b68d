#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/utf8.h"
#include "ops/result.h"

namespace rekernel {

/// Parses strict JSON. `where` (a file name, say) starts every error message.
Result<boost::json::value> parse_json(std::string_view text, const std::string& where);

/// The same of a file, whose path starts the messages.
Result<boost::json::value> read_json_file(const std::filesystem::path& path);

/// Two-space indented JSON with a final newline; short arrays and objects stay on one line, and the
/// numbers of longer arrays fill lines.
std::string pretty_json(const boost::json::value& value);

/// Whether the text is a C identifier of at most 64 characters.
bool is_identifier(std::string_view text);

/// One field of untrusted JSON, with the place it came from. All readers made from one root share
/// their first error: getters return a harmless default once anything was wrong, so that a parser
/// reads straight through and asks for the verdict at the end.
///
///   JsonReader root("kernel.json", value);
///   auto name = root.required("name").string();
///   root.no_other_keys();
///   if (auto error = root.error()) return *error;
class JsonReader {
 public:
  JsonReader(std::string where, const boost::json::value& value);

  JsonReader required(std::string_view key);
  std::optional<JsonReader> optional(std::string_view key);
  bool has(std::string_view key) const;
  /// The string of a key; empty where the key is absent.
  std::string optional_string(std::string_view key);
  /// Fails on every key that was asked for by neither `required` nor `optional`.
  void no_other_keys();

  std::vector<JsonReader> array(std::size_t min_size = 0, std::size_t max_size = 1u << 20);
  /// Every entry of an object with free keys, in file order.
  std::vector<std::pair<std::string, JsonReader>> entries(std::size_t max_size = 1024);

  std::int64_t integer(std::int64_t min, std::int64_t max);
  double real();
  bool boolean();
  std::string string(std::size_t max_length = 1u << 20);
  /// A C identifier of at most 64 characters.
  std::string identifier();
  /// An array of strings.
  std::vector<std::string> strings(std::size_t max_size = 1u << 20,
                                   std::size_t max_length = 1u << 20);
  /// An object with free keys and strings for values.
  std::map<std::string, std::string> string_map(std::size_t max_length = 1u << 20);

  bool is_string() const;
  bool is_object() const;
  bool is_integer() const;
  const boost::json::value& raw() const { return *value_; }

  /// Records "<place>: <problem>" unless an earlier error stands.
  void fail(const std::string& problem);
  /// Records "<place>: expected <expected>, got <the value, shortened>".
  void expect(const std::string& expected);
  std::optional<Error> error() const;

 private:
  /// From an object or array to a value in it.
  struct Step {
    enum class To { itself, member, entry } to = To::itself;
    std::string_view key;  ///< of the JSON, which outlives its readers
    std::size_t index = 0;
  };
  struct Scope;

  JsonReader(const boost::json::value& value, std::shared_ptr<Scope> around, Step step);
  const boost::json::object* object_or_fail();
  const boost::json::value* find(std::string_view key, Step& step);
  bool failed() const;
  std::string place() const;

  const boost::json::value* value_;
  /// The value itself where it is an object, an array or the root; else what it is in, by `step_`.
  std::shared_ptr<Scope> scope_;
  Step step_;
};

}  // namespace rekernel
