// ops/problems/problem.schema.json, which editors check files by, says what the reader says.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "harness/base/json.h"
#include "harness/problems/problem_file.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path folder = fs::path(REKERNEL_SOURCE_DIR) / "ops" / "problems";

json::value read(const fs::path& path) {
  Result<json::value> value = read_json_file(path);
  EXPECT_TRUE(value.ok()) << value.error().message;
  return value ? *value : json::value();
}

/// Sets what the path of keys and indices leads to ("/inputs/x/dtype").
void set(json::value& value, const std::string& path, const json::value& to) {
  const std::size_t end = path.find('/', 1);
  const std::string step = path.substr(1, end == std::string::npos ? end : end - 1);
  json::value& next =
      value.is_array() ? value.as_array().at(std::stoul(step)) : value.as_object()[step];
  if (end == std::string::npos) {
    next = to;
  } else {
    set(next, path.substr(end), to);
  }
}

/// As much of JSON Schema as ours uses; a word that it does not know is a failure.
class Validator {
 public:
  explicit Validator(const json::value& root) : root_(root) {}

  bool accepts(const json::value& value) const { return accepts(root_, value); }

 private:
  bool accepts(const json::value& schema, const json::value& value) const {
    return std::all_of(schema.as_object().begin(), schema.as_object().end(), [&](const auto& word) {
      return holds(schema.as_object(), std::string(word.key()), word.value(), value);
    });
  }

  bool holds(const json::object& schema, const std::string& word, const json::value& said,
             const json::value& value) const {
    static const std::set<std::string> words_for_people = {"$schema", "title", "description",
                                                           "$defs"};
    if (words_for_people.contains(word) || word == "properties") return true;
    if (word == "$ref") {
      const std::string to(said.as_string());
      return accepts(root_.at("$defs").at(to.substr(to.rfind('/') + 1)), value);
    }
    if (word == "type") return is_of(std::string(said.as_string()), value);
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
    return holds_of_number(word, said.to_number<double>(), value.to_number<double>());
  }

  bool holds_of_object(const json::object& schema, const std::string& word, const json::value& said,
                       const json::object& object) const {
    if (word == "required") {
      return std::all_of(said.as_array().begin(), said.as_array().end(),
                         [&](const json::value& key) { return object.contains(key.as_string()); });
    }
    if (word == "minProperties") return object.size() >= said.to_number<std::size_t>();
    if (word == "maxProperties") return object.size() <= said.to_number<std::size_t>();
    EXPECT_EQ(word, "additionalProperties");
    const json::value* known = schema.if_contains("properties");
    return std::all_of(object.begin(), object.end(), [&](const auto& entry) {
      const json::value* own = known ? known->as_object().if_contains(entry.key()) : nullptr;
      if (own) return accepts(*own, entry.value());
      return said.is_object() && accepts(said, entry.value());
    });
  }

  bool holds_of_array(const std::string& word, const json::value& said,
                      const json::array& array) const {
    if (word == "minItems") return array.size() >= said.to_number<std::size_t>();
    if (word == "maxItems") return array.size() <= said.to_number<std::size_t>();
    EXPECT_EQ(word, "items");
    return std::all_of(array.begin(), array.end(),
                       [&](const json::value& one) { return accepts(said, one); });
  }

  static bool holds_of_text(const std::string& word, const json::value& said,
                            const std::string& text) {
    if (word == "minLength") return text.size() >= said.to_number<std::size_t>();
    if (word == "maxLength") return text.size() <= said.to_number<std::size_t>();
    EXPECT_EQ(word, "pattern");
    EXPECT_EQ(said, "^[A-Za-z_][A-Za-z0-9_]*$");
    return is_identifier(text);
  }

  static bool holds_of_number(const std::string& word, double said, double value) {
    if (word == "minimum") return value >= said;
    if (word == "maximum") return value <= said;
    EXPECT_EQ(word, "exclusiveMinimum");
    return value > said;
  }

  static bool is_of(const std::string& type, const json::value& value) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    EXPECT_EQ(type, "number");
    return value.is_number();
  }

  const json::value& root_;
};

TEST(ProblemSchema, AcceptsEveryProblem) {
  const json::value schema = read(folder / "problem.schema.json");
  const Validator validator(schema);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().parent_path() == folder) continue;
    EXPECT_TRUE(validator.accepts(read(entry.path()))) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 122);
}

TEST(ProblemSchema, RefusesWhatTheReaderRefuses) {
  const json::value schema = read(folder / "problem.schema.json");
  const json::value good = read(folder / "kernelbench1" / "rmsnorm.json");
  ASSERT_TRUE(Validator(schema).accepts(good));
  const auto refused = [&](const std::string& pointer, const char* value) {
    json::value bad = good;
    set(bad, pointer, json::parse(value));
    const Result<Problem> problem =
        parse_problem(json::serialize(bad), "bad", "rmsnorm", "kernelbench1");
    EXPECT_FALSE(problem.ok()) << pointer << " " << value;
    return !Validator(schema).accepts(bad);
  };
  EXPECT_TRUE(refused("/schema", "2"));
  EXPECT_TRUE(refused("/speed", "1"));
  EXPECT_TRUE(refused("/axes/batch", "0"));
  EXPECT_TRUE(refused("/axes/batch", "1.5"));
  EXPECT_TRUE(refused("/other_sizes/batch", "[1]"));
  EXPECT_TRUE(refused("/inputs/x/dtype", "\"f64\""));
  EXPECT_TRUE(refused("/inputs/x/draw", "{}"));
  EXPECT_TRUE(refused("/inputs/x/draw/gamma", "[0, 1]"));
  EXPECT_TRUE(refused("/inputs/x/draw/normal", "[0]"));
  EXPECT_TRUE(refused("/outputs", "{}"));
  EXPECT_TRUE(refused("/definition", "[]"));
  EXPECT_TRUE(refused("/definition/0", "[]"));
  EXPECT_TRUE(refused("/pytorch", "\"\""));
  EXPECT_TRUE(refused("/tolerance", "\"fp64\""));
  EXPECT_TRUE(refused("/tolerance", R"({"class": "fp32", "rms": 2, "why": "so"})"));
  EXPECT_TRUE(refused("/tolerance", R"({"class": "fp32"})"));
  EXPECT_TRUE(refused("/invariants", R"([{"name": "n", "violation": "v = 1.0", "bound": -1}])"));
}

/// The keys that the reader names where it finds one that it does not know.
std::set<std::string> keys_of_reader(const std::string& pointer) {
  json::value bad = read(folder / "kernelbench1" / "rmsnorm.json");
  set(bad, "/tolerance", json::parse(R"({"class": "fp32", "why": "so"})"));
  set(bad, "/invariants",
      json::parse(R"([{"name": "n", "violation": "v[i, j, k, l] = y[i, j, k, l]",
                                      "bound": 1}])"));
  set(bad, pointer + "/unknown", 1);
  const Result<Problem> problem =
      parse_problem(json::serialize(bad), "bad", "rmsnorm", "kernelbench1");
  EXPECT_FALSE(problem.ok());
  if (problem) return {};
  std::set<std::string> keys;
  std::string known = problem.error().message;
  EXPECT_NE(known.find("known: "), std::string::npos) << known;
  known = known.substr(known.find("known: ") + 7);
  for (std::size_t at = 0; at < known.size();) {
    const std::size_t comma = std::min(known.find(", ", at), known.size());
    keys.insert(known.substr(at, comma - at));
    at = comma + 2;
  }
  return keys;
}

std::set<std::string> keys_of(const json::value& properties) {
  std::set<std::string> keys;
  for (const auto& entry : properties.as_object()) keys.insert(std::string(entry.key()));
  return keys;
}

TEST(ProblemSchema, HasTheKeysOfTheReader) {
  const json::value schema = read(folder / "problem.schema.json");
  const json::value& properties = schema.at("properties");
  EXPECT_EQ(keys_of(properties), keys_of_reader(""));
  EXPECT_EQ(keys_of(properties.at("source").at("properties")), keys_of_reader("/source"));
  EXPECT_EQ(keys_of(properties.at("inputs").at("additionalProperties").at("properties")),
            keys_of_reader("/inputs/x"));
  EXPECT_EQ(keys_of(properties.at("outputs").at("additionalProperties").at("properties")),
            keys_of_reader("/outputs/y"));
  EXPECT_EQ(keys_of(properties.at("tolerance").at("anyOf").at(1).at("properties")),
            keys_of_reader("/tolerance"));
  EXPECT_EQ(keys_of(properties.at("invariants").at("items").at("properties")),
            keys_of_reader("/invariants/0"));
}

}  // namespace
}  // namespace rekernel
