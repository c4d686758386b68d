// ops/problems/problem.schema.json, which editors check files by, says what the reader says.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "harness/base/json.h"
#include "harness/problems/problem_file.h"
#include "tests/schema_validator.h"

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

TEST(ProblemSchema, AcceptsEveryProblem) {
  const json::value schema = read(folder / "problem.schema.json");
  const SchemaValidator validator(schema);
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
  ASSERT_TRUE(SchemaValidator(schema).accepts(good));
  const auto refused = [&](const std::string& pointer, const char* value) {
    json::value bad = good;
    set(bad, pointer, json::parse(value));
    const Result<Problem> problem =
        parse_problem(json::serialize(bad), "bad", "rmsnorm", "kernelbench1");
    EXPECT_FALSE(problem.ok()) << pointer << " " << value;
    return !SchemaValidator(schema).accepts(bad);
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
  EXPECT_TRUE(refused("/inputs/x/read_share", "1.5"));
  EXPECT_TRUE(refused("/inputs/x/read_share", "0"));
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

/// rmsnorm with a program in place of its definition.
json::value with_program(json::value problem) {
  json::object& object = problem.as_object();
  for (const char* key : {"definition", "pytorch", "other_sizes", "row"}) object.erase(key);
  object["program"] = json::parse(
      R"({"form": "kernelbench", "text": "pass", "arguments": ["x", null], "parameters": {}, "draws": ["x"]})");
  return problem;
}

TEST(ProblemSchema, TakesAProgramInPlaceOfADefinition) {
  const json::value schema = read(folder / "problem.schema.json");
  const SchemaValidator validator(schema);
  const json::value good = with_program(read(folder / "kernelbench1" / "rmsnorm.json"));
  EXPECT_TRUE(validator.accepts(good));
  const auto taken = [](const json::value& value) {
    return parse_problem(json::serialize(value), "one", "rmsnorm", "kernelbench1").ok();
  };
  EXPECT_TRUE(taken(good));
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, std::string>>{
           {"/definition", R"(["y[b, c, h, w] = x[b, c, h, w]"])"},
           {"/program/form", "\"c\""},
           {"/program/arguments/0", "7"},
           {"/program/draws", "[]"},
           {"/program/values", "{}"},
           {"/program/values", "7"},
           {"/program/speed", "1"}}) {
    json::value bad = good;
    set(bad, pointer, json::parse(value));
    EXPECT_FALSE(taken(bad)) << pointer;
    EXPECT_EQ(validator.accepts(bad), pointer == "/definition") << pointer;
  }
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
