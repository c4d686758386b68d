// The table of kernel.json says what the reader says, and what is made of it is current.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "harness/plan/plan_table.h"
#include "harness/plan/plan_texts.h"
#include "tests/schema_validator.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

const fs::path project = REKERNEL_SOURCE_DIR;
constexpr const char* kernel_source = "extern \"C\" __global__ void normalise() {}\n";

/// Sets what the path of keys and indices leads to ("/launches/0/value"); the plan itself for "".
void put_at(json::value& plan, std::string_view path, const json::value& to) {
  json::value* place = &plan;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string step(path.substr(0, path.find('/')));
    path.remove_prefix(step.size());
    place = place->is_array() ? &place->as_array().at(std::stoul(step)) : &place->as_object()[step];
  }
  *place = to;
}

json::object& object_at(json::value& plan, std::string_view path) {
  json::value* place = &plan;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string step(path.substr(0, path.find('/')));
    path.remove_prefix(step.size());
    place =
        place->is_array() ? &place->as_array().at(std::stoul(step)) : &place->as_object().at(step);
  }
  return place->as_object();
}

/// Empty where the reader accepts the plan.
std::string refusal(const json::value& plan) {
  const auto candidate = parse_candidate(json::serialize(plan), kernel_source, "kernel.json");
  return candidate ? "" : candidate.error().message;
}

/// Where the test's plan has each kind of object.
const std::map<std::string, std::string> places = {
    {"plan", ""},
    {"search_origin", "/origin"},
    {"noted_origin", "/origin"},
    {"compile", "/compile"},
    {"memset", "/launches/0"},
    {"launch", "/launches/1"},
    {"per_sm", "/launches/1/grid/0"},
    {"scalar", "/launches/1/args/3"},
    {"tensor_map_argument", "/launches/1/args/1"},
    {"tensor_map", "/launches/1/args/1/tensor_map"},
    {"bytes_argument", "/launches/1/args/2"},
    {"address", "/launches/1/args/2/addresses/0"},
    {"placed_tensor_map", "/launches/1/args/2/tensor_maps/0"},
};

json::value example_of(const PlanObject& object) { return json::parse(plan_example(object)); }

/// A plan with one object of each kind, the one of this kind with every key that it can have.
json::value plan_with(const PlanObject& object) {
  json::value plan = example_of(plan_objects().front());
  put_at(plan, "/launches/1", example_of(plan_object("launch")));
  put_at(plan, "/launches/1/args", json::parse(R"(["x", 0, 0, {"i32": 7}])"));
  put_at(plan, "/launches/1/args/1", example_of(plan_object("tensor_map_argument")));
  put_at(plan, "/launches/1/args/2", example_of(plan_object("bytes_argument")));
  if (object.name == "placed_tensor_map") {
    put_at(plan, "/launches/1/args/2",
           {{"bytes", std::string(2 * tensor_map_bytes, '0')}, {"tensor_maps", {0}}});
  }
  if (!object.one_key) put_at(plan, places.at(object.name), example_of(object));
  if (object.name == "launch") put_at(plan, "/launches/1/args", json::parse(R"(["x"])"));
  return plan;
}

TEST(PlanTable, HasAPlaceInTheTestForEachObject) {
  ASSERT_EQ(places.size(), plan_objects().size());
  for (const PlanObject& object : plan_objects()) EXPECT_TRUE(places.contains(object.name));
}

TEST(PlanTable, EachKeyIsReadAndTheRequiredOnesAreRequired) {
  const json::value schema = plan_schema();
  const SchemaValidator validator(schema);
  for (const PlanObject& object : plan_objects()) {
    const json::value whole = plan_with(object);
    EXPECT_EQ(refusal(whole), "") << object.name << "\n" << whole;
    EXPECT_TRUE(validator.accepts(whole)) << object.name << "\n" << whole;
    if (object.one_key) continue;
    for (const PlanKey& key : object.keys) {
      json::value without = whole;
      ASSERT_EQ(object_at(without, places.at(object.name)).erase(key.key), 1u);
      if (key.key == "workspace") {
        // No launch may name what is gone.
        put_at(without, "/launches", json::parse(R"([{"kernel": "normalise", "grid": [1],
            "block": [1], "args": []}])"));
      }
      EXPECT_EQ(refusal(without).empty(), !key.required) << object.name << "." << key.key;
      EXPECT_EQ(validator.accepts(without), !key.required) << object.name << "." << key.key;
    }
  }
}

TEST(PlanTable, HasTheKeysOfTheReader) {
  const json::value schema = plan_schema();
  for (const PlanObject& object : plan_objects()) {
    json::value plan = plan_with(object);
    object_at(plan, places.at(object.name))["no_such_key"] = 1;
    const std::string message = refusal(plan);
    EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << object.name;
    ASSERT_NE(message, "") << object.name;
    const std::size_t at = message.find("known: ");
    if (at == std::string::npos) {
      // A scalar has one key and no list of known ones.
      EXPECT_TRUE(object.one_key) << object.name << ": " << message;
      continue;
    }
    std::set<std::string> known, keys;
    const std::string list = message.substr(at + 7) + ", ";
    for (std::size_t begin = 0, end; (end = list.find(", ", begin)) != std::string::npos;
         begin = end + 2) {
      known.insert(list.substr(begin, end - begin));
    }
    for (const PlanKey& key : object.keys) keys.insert(key.key);
    EXPECT_EQ(known, keys) << object.name;
  }
}

TEST(PlanTable, EachScalarIsReadAndNothingBesideThem) {
  const PlanObject& scalar = plan_object("scalar");
  for (const PlanKey& key : scalar.keys) {
    json::value plan = plan_with(scalar);
    put_at(plan, places.at("scalar"), json::object{{key.key, json::parse(key.example)}});
    EXPECT_EQ(refusal(plan), "") << key.key;
    if (key.value.kind != PlanValue::Kind::integer) continue;
    put_at(plan, places.at("scalar"), json::object{{key.key, 0.5}});
    const std::string range =
        "from " + std::to_string(key.value.least) + " to " + std::to_string(key.value.most);
    EXPECT_NE(refusal(plan).find(range), std::string::npos) << refusal(plan);
  }
}

/// Calls `check` for each integer of a key's value with the path that leads to it.
template <class Check>
void for_each_integer(const PlanValue& value, const std::string& path, const Check& check) {
  if (value.kind == PlanValue::Kind::integer) check(path, value);
  if (value.kind == PlanValue::Kind::any_of) for_each_integer(value.of.front(), path, check);
  if (value.kind != PlanValue::Kind::list) return;
  for (std::size_t i = 0; i < value.of.size(); ++i) {
    for_each_integer(value.of[i], path + "/" + std::to_string(i), check);
  }
}

TEST(PlanTable, RangesOfIntegersAreThoseOfTheReader) {
  const json::value schema = plan_schema();
  int checked = 0;
  for (const PlanObject& object : plan_objects()) {
    if (object.one_key) continue;
    for (const PlanKey& key : object.keys) {
      if (!key.most_words.empty()) continue;
      const Arch arch = "sm_90a";
      const std::string place = places.at(object.name) + "/" + key.key;
      for_each_integer(
          value_for(key, arch), place, [&](const std::string& path, const PlanValue& value) {
            json::value plan = plan_with(object);
            if (key.value.kind == PlanValue::Kind::list && key.key != "dims" && key.key != "box" &&
                key.key != "element_strides" && key.key != "strides_bytes") {
              json::array extents(3, json::value(1));
              put_at(plan, place, extents);
            }
            // What no integer is, is told with the range.
            put_at(plan, path, 0.5);
            const std::string range = "an integer from " + std::to_string(value.least) + " to " +
                                      std::to_string(value.most);
            EXPECT_NE(refusal(plan).find(range), std::string::npos)
                << path << ": " << refusal(plan);
            // A text is the expression of one, where sizes are meant.
            put_at(plan, path, json::string(std::to_string(value.least)));
            EXPECT_EQ(refusal(plan).find("an integer from") == std::string::npos, value.in_axes)
                << path << ": " << refusal(plan);
            EXPECT_EQ(SchemaValidator(schema).accepts(plan), value.in_axes) << path;
            for (const json::value& outside :
                 {json::value(value.least - 1), json::value(value.most + 1)}) {
              put_at(plan, path, outside);
              EXPECT_NE(refusal(plan), "") << path << " " << outside;
              // Editors compute with doubles.
              if (value.most > (std::uint64_t{1} << 53)) continue;
              EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path << " " << outside;
            }
            ++checked;
          });
    }
  }
  EXPECT_GE(checked, 15);
}

TEST(PlanTable, LengthsOfListsAreThoseOfTheReader) {
  const json::value schema = plan_schema();
  int checked = 0;
  for (const PlanObject& object : plan_objects()) {
    for (const PlanKey& key : object.keys) {
      if (key.value.kind != PlanValue::Kind::list) continue;
      const std::string path = places.at(object.name) + "/" + key.key;
      json::value plan = plan_with(object);
      const auto entries = [&](std::uint64_t count) {
        const json::array given = json::parse(key.example).as_array();
        json::array list;
        for (std::uint64_t i = 0; i < count; ++i) {
          list.push_back(given.empty() ? json::value() : given.at(i % given.size()));
        }
        return list;
      };
      put_at(plan, path, entries(key.value.most + 1));
      EXPECT_NE(refusal(plan), "") << path;
      EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path;
      if (key.value.least > 0) {
        put_at(plan, path, json::array{});
        EXPECT_NE(refusal(plan), "") << path;
        EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 9);
}

TEST(PlanTable, TextsAndChoicesAreThoseOfTheReader) {
  const json::value schema = plan_schema();
  for (const PlanObject& object : plan_objects()) {
    for (const PlanKey& key : object.keys) {
      const std::string path = places.at(object.name) + "/" + key.key;
      json::value plan = plan_with(object);
      if (key.value.kind == PlanValue::Kind::text) {
        put_at(plan, path, json::value(std::string(key.value.most + 1, 'a')));
        EXPECT_NE(refusal(plan), "") << path;
        EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path;
        put_at(plan, path, "");
        EXPECT_NE(refusal(plan), "") << path;
        EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path;
      }
      if (key.value.kind == PlanValue::Kind::choice) {
        put_at(plan, path, "none of them");
        const std::string message = refusal(plan);
        EXPECT_NE(message.find("one of \""), std::string::npos) << message;
        EXPECT_FALSE(SchemaValidator(schema).accepts(plan)) << path;
        for (const std::string& choice : key.value.choices) {
          EXPECT_NE(message.find('"' + choice + '"'), std::string::npos) << path << " " << choice;
        }
        EXPECT_EQ(static_cast<std::size_t>(std::count(message.begin(), message.end(), '"')),
                  2 * key.value.choices.size() + 2)
            << message;
      }
    }
  }
}

TEST(PlanTable, WhatAnArchitectureLacksIsRefused) {
  const json::value schema = plan_schema();
  const json::value minimal = json::parse(R"({"schema": 1, "problem": "softmax", "name": "n",
    "idea": "i", "arch": "sm_80", "origin": {"note": "n"},
    "launches": [{"kernel": "k", "grid": [2], "block": [32], "args": []}]})");
  ASSERT_EQ(refusal(minimal), "");
  for (const char* extra :
       {R"({"cluster": [2]})", R"({"programmatic_launch": true})",
        R"({"dynamic_shared_bytes": 101377})",
        R"({"args": [{"tensor_map": {"of": "x", "dtype": "f32", "dims": [64], "strides_bytes": [],
            "box": [32]}}]})"}) {
    const json::value more = json::parse(extra);
    for (const char* arch : {"sm_80", "sm_90a"}) {
      json::value plan = minimal;
      put_at(plan, "/arch", arch);
      for (const auto& [key, value] : more.as_object()) {
        put_at(plan, "/launches/0/" + std::string(key), value);
      }
      const bool good = std::string_view(arch) == "sm_90a";
      EXPECT_EQ(refusal(plan).empty(), good) << arch << " " << extra;
      EXPECT_EQ(SchemaValidator(schema).accepts(plan), good) << arch << " " << extra;
    }
  }
}

TEST(PlanSchema, AcceptsEveryValidPlanOfTheProject) {
  const json::value schema = plan_schema();
  const SchemaValidator validator(schema);
  int valid = 0;
  for (const char* folder : {"generated", "tests/honest", "tests/adversarial"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / folder)) {
      if (entry.path().filename() != "kernel.json") continue;
      const Result<json::value> plan = read_json_file(entry.path());
      if (!plan || !load_candidate(entry.path().parent_path())) continue;
      EXPECT_TRUE(validator.accepts(*plan)) << entry.path();
      ++valid;
    }
  }
  EXPECT_GE(valid, 150);
}

TEST(PlanPage, AndSchemaAreMadeOfTheTable) {
  const auto expect_current = [](const char* file, const std::string& text, const char* command) {
    const Result<std::string> committed = read_file(project / file);
    ASSERT_TRUE(committed.ok()) << file << ": make it with `" << command << "`";
    EXPECT_EQ(*committed, text) << file << " is not current: make it with `" << command << "`";
  };
  expect_current("generated/PLAN.md", plan_page(), "rekernel show plan > generated/PLAN.md");
  expect_current("generated/kernel.schema.json", pretty_json(plan_schema()),
                 "rekernel show plan --json > generated/kernel.schema.json");
}

TEST(PlanLines, SpeakOfWhatADeviceHas) {
  const std::string hopper = plan_lines({"sm_80", "sm_89", "sm_90a"}, "any");
  for (const char* part :
       {"- \"arch\" (needed): the lowest target, any.\n",
        "- \"dynamic_shared_bytes\": integer from 0 to 232448 (sm_80: at most 101376; sm_89: at "
        "most 101376). ",
        "- \"cluster\": list of 1 to 3 integers from 1 to 16. ", "Needs arch sm_90a.\n",
        "- \"swizzle\": one of \"none\", \"32B\", \"64B\", \"128B\". "}) {
    EXPECT_NE(hopper.find(part), std::string::npos) << part << "\n" << hopper;
  }
  for (const char* absent : {"\"schema\"", "\"origin\"", "\"module\"", "\"addresses\""}) {
    EXPECT_EQ(hopper.find(absent), std::string::npos) << absent;
  }
  const std::string ampere = plan_lines({"sm_80"}, "any");
  for (const char* absent : {"cluster", "programmatic_launch", "tensor_map", "sm_90a"}) {
    EXPECT_EQ(ampere.find(absent), std::string::npos) << absent << "\n" << ampere;
  }
}

}  // namespace
}  // namespace rekernel
