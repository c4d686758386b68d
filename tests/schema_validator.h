#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string>

namespace rekernel {

namespace json = boost::json;

/// As much of JSON Schema as ours uses; a word that it does not know is a failure.
class SchemaValidator {
 public:
  explicit SchemaValidator(const json::value& root) : root_(root) {}

  bool accepts(const json::value& value) const { return accepts(root_, value); }

 private:
  bool accepts(const json::value& schema, const json::value& value) const {
    if (schema.is_bool()) return schema.get_bool();
    return std::all_of(schema.as_object().begin(), schema.as_object().end(), [&](const auto& word) {
      return holds(schema.as_object(), std::string(word.key()), word.value(), value);
    });
  }

  bool holds(const json::object& schema, const std::string& word, const json::value& said,
             const json::value& value) const {
    static const std::set<std::string> words_for_people = {"$schema", "title", "description",
                                                           "$defs"};
    if (words_for_people.contains(word)) return true;
    if (word == "properties") return has_properties(said.as_object(), value);
    if (word == "$ref") {
      const std::string to(said.as_string());
      return accepts(root_.at("$defs").at(to.substr(to.rfind('/') + 1)), value);
    }
    if (word == "type" && said.is_array()) {
      return std::any_of(
          said.as_array().begin(), said.as_array().end(),
          [&](const json::value& one) { return is_of(std::string(one.as_string()), value); });
    }
    if (word == "type") return is_of(std::string(said.as_string()), value);
    if (word == "if") {
      const json::value* then = schema.if_contains("then");
      return !then || !accepts(said, value) || accepts(*then, value);
    }
    if (word == "then") return true;
    if (word == "allOf") {
      return std::all_of(said.as_array().begin(), said.as_array().end(),
                         [&](const json::value& one) { return accepts(one, value); });
    }
    if (word == "const") return value == said;
    if (word == "enum") {
      return std::find(said.as_array().begin(), said.as_array().end(), value) !=
             said.as_array().end();
    }
    if (word == "anyOf") {
      return std::any_of(said.as_array().begin(), said.as_array().end(),
                         [&](const json::value& one) { return accepts(one, value); });
    }
    if (value.is_object()) return holds_of_object(schema, word, said, value.as_object());
    if (value.is_array()) return holds_of_array(word, said, value.as_array());
    if (value.is_string()) return holds_of_text(word, said, std::string(value.as_string()));
    if (!value.is_number() || !said.is_number()) return applies_to_another_type(word);
    return holds_of_number(word, said.to_number<double>(), value.to_number<double>());
  }

  bool has_properties(const json::object& properties, const json::value& value) const {
    const json::object* object = value.if_object();
    return !object || std::all_of(properties.begin(), properties.end(), [&](const auto& entry) {
      const json::value* own = object->if_contains(entry.key());
      return !own || accepts(entry.value(), *own);
    });
  }

  bool holds_of_object(const json::object& schema, const std::string& word, const json::value& said,
                       const json::object& object) const {
    if (word == "required") {
      return std::all_of(said.as_array().begin(), said.as_array().end(),
                         [&](const json::value& key) { return object.contains(key.as_string()); });
    }
    if (word == "minProperties") return object.size() >= said.to_number<std::size_t>();
    if (word == "maxProperties") return object.size() <= said.to_number<std::size_t>();
    if (word == "propertyNames") {
      return std::all_of(object.begin(), object.end(), [&](const auto& entry) {
        return accepts(said, json::value(entry.key()));
      });
    }
    if (word != "additionalProperties") return applies_to_another_type(word);
    const json::value* known = schema.if_contains("properties");
    return std::all_of(object.begin(), object.end(), [&](const auto& entry) {
      return (known && known->as_object().contains(entry.key())) || accepts(said, entry.value());
    });
  }

  bool holds_of_array(const std::string& word, const json::value& said,
                      const json::array& array) const {
    if (word == "minItems") return array.size() >= said.to_number<std::size_t>();
    if (word == "maxItems") return array.size() <= said.to_number<std::size_t>();
    if (word == "prefixItems") {
      for (std::size_t i = 0; i < std::min(array.size(), said.as_array().size()); ++i) {
        if (!accepts(said.as_array()[i], array[i])) return false;
      }
      return true;
    }
    if (word != "items") return applies_to_another_type(word);
    return std::all_of(array.begin(), array.end(),
                       [&](const json::value& one) { return accepts(said, one); });
  }

  static bool holds_of_text(const std::string& word, const json::value& said,
                            const std::string& text) {
    if (word == "minLength") return text.size() >= said.to_number<std::size_t>();
    if (word == "maxLength") return text.size() <= said.to_number<std::size_t>();
    if (word != "pattern") return applies_to_another_type(word);
    return matches(std::string(said.as_string()), text);
  }

  /// Of what our patterns use, POSIX's extended expressions mean the same as ECMAScript's.
  static bool matches(const std::string& pattern, const std::string& text) {
    regex_t expression;
    EXPECT_EQ(::regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0) << pattern;
    const bool found = ::regexec(&expression, text.c_str(), 0, nullptr, 0) == 0;
    ::regfree(&expression);
    return found;
  }

  static bool holds_of_number(const std::string& word, double said, double value) {
    if (word == "minimum") return value >= said;
    if (word == "maximum") return value <= said;
    if (word != "exclusiveMinimum") return applies_to_another_type(word);
    return value > said;
  }

  /// Words that say nothing of a value of this type; a word that is not known is a failure.
  static bool applies_to_another_type(const std::string& word) {
    static const std::set<std::string> words = {
        "required",  "minProperties", "maxProperties", "propertyNames", "additionalProperties",
        "items",     "prefixItems",   "minItems",      "maxItems",      "pattern",
        "minLength", "maxLength",     "minimum",       "maximum",       "exclusiveMinimum"};
    EXPECT_TRUE(words.contains(word)) << word;
    return true;
  }

  static bool is_of(const std::string& type, const json::value& value) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    EXPECT_EQ(type, "number");
    return value.is_number();
  }

  const json::value& root_;
};

}  // namespace rekernel
