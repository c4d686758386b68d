#include "harness/base/json_fields.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rekernel {
namespace {

enum class Colour { red, green };

const char* to_string(Colour colour) { return colour == Colour::red ? "red" : "green"; }

std::optional<Colour> find_colour(std::string_view name) {
  for (const Colour colour : {Colour::red, Colour::green}) {
    if (name == to_string(colour)) return colour;
  }
  return std::nullopt;
}

struct Leaf {
  std::string name;
  double size = 0;
};

struct Tree {
  std::string name;
  std::int64_t age_ns = 0;
  int number = 0;
  bool green = false;
  double height = 0;
  double share = 0;
  std::uint64_t seed = 0;
  Colour colour = Colour::red;
  std::chrono::seconds deadline{0};
  std::string note;
  std::optional<Leaf> leaf;
  std::vector<Leaf> leaves;
  std::vector<std::pair<std::string, std::int64_t>> split;
  std::map<std::string, std::string> words;
  std::int64_t later = 0;
};

namespace tree_json {

using namespace json_fields;

constexpr std::tuple leaf_fields{field("name", &Leaf::name, Text{8}),
                                 field("size", &Leaf::size, real)};

constexpr std::tuple inner_fields{field("age_ns", &Tree::age_ns, count),
                                  field("number", &Tree::number, Whole{-5, 5})};

constexpr std::tuple fields{
    schema(7),
    field("name", &Tree::name, text),
    Within{"inner", inner_fields},
    field("green", &Tree::green, flag),
    field("height", &Tree::height, real),
    field("share", &Tree::share, NumberText{"%.4g"}),
    field("seed", &Tree::seed, NumberText{}),
    field("colour", &Tree::colour, Named<Colour>{to_string, find_colour, "a colour"}),
    field("deadline_s", &Tree::deadline, Whole{0, 100}),
    field("note", &Tree::note, text, unless_empty),
    field("leaf", &Tree::leaf, Nested{leaf_fields}, unless_empty),
    field("leaves", &Tree::leaves, List{Nested{leaf_fields}, 0, 2}, unless_empty),
    field("split", &Tree::split, Entries{count}),
    field("words", &Tree::words, TextMap{8}),
    field("later", &Tree::later, count, newer)};

}  // namespace tree_json

Tree full_tree() {
  return {.name = "oak",
          .age_ns = 3,
          .number = -5,
          .green = true,
          .height = 1.5,
          .share = 0.123456,
          .seed = ~std::uint64_t{0},
          .colour = Colour::green,
          .deadline = std::chrono::seconds(9),
          .note = "old",
          .leaf = Leaf{"a", 1},
          .leaves = {{"b", 2}, {"c", std::numeric_limits<double>::infinity()}},
          .split = {{"z", 1}, {"a", 2}},
          .words = {{"k", "v"}},
          .later = 4};
}

std::string text_of(const Tree& tree) {
  return boost::json::serialize(object_of(tree, tree_json::fields));
}

const char* const full_text =
    R"({"schema":7,"name":"oak","inner":{"age_ns":3,"number":-5},"green":true,"height":1.5E0,)"
    R"("share":"0.1235","seed":"18446744073709551615","colour":"green","deadline_s":9,)"
    R"("note":"old","leaf":{"name":"a","size":1E0},)"
    R"("leaves":[{"name":"b","size":2E0},{"name":"c","size":null}],)"
    R"("split":{"z":1,"a":2},"words":{"k":"v"},"later":4})";

/// What is read of a text and written again; what was wrong, if anything was.
std::string again(std::string_view text) {
  const boost::json::value json = boost::json::parse(text);
  JsonReader reader("tree", json);
  const Tree tree = read_object<Tree>(reader, tree_json::fields);
  const auto error = reader.error();
  return error ? error->message : text_of(tree);
}

TEST(JsonFields, AreWrittenInTheirOrder) { EXPECT_EQ(text_of(full_tree()), full_text); }

TEST(JsonFields, AreReadAsTheyWereWritten) { EXPECT_EQ(again(full_text), full_text); }

TEST(JsonFields, WhatIsEmptyMayBeLeftOut) {
  const std::string text = text_of({});
  for (const char* key : {"note", "leaf", "leaves"}) {
    EXPECT_EQ(text.find("\"" + std::string(key) + "\""), std::string::npos) << text;
  }
  EXPECT_EQ(again(text), text);
}

std::string without(const char* key) {
  boost::json::object json = boost::json::parse(full_text).as_object();
  json.erase(key);
  return boost::json::serialize(json);
}

TEST(JsonFields, WhatIsNewerMayBeAbsentAndTheRestMayNot) {
  EXPECT_TRUE(again(without("later")).ends_with("\"later\":0}"));
  for (const char* key : {"schema", "name", "inner", "green", "split", "words", "colour"}) {
    EXPECT_EQ(again(without(key)), "tree: the key \"" + std::string(key) + "\" is missing");
  }
}

std::string with(const std::string& part, const std::string& instead) {
  std::string text = full_text;
  return text.replace(text.find(part), part.size(), instead);
}

TEST(JsonFields, ErrorsNameThePlace) {
  EXPECT_EQ(again(with("\"number\":-5", "\"number\":6")),
            "tree: inner.number: expected an integer from -5 to 5, got 6");
  EXPECT_EQ(again(with("\"green\",\"dead", "\"blue\",\"dead")),
            "tree: colour: expected a colour, got \"blue\"");
  EXPECT_EQ(again(with("\"18446744073709551615\"", "\"1x\"")),
            "tree: seed: expected a number as text, got \"1x\"");
  EXPECT_EQ(again(with("\"size\":2E0", "\"size\":2,\"more\":1")),
            "tree: leaves[0]: unknown key \"more\"; known: name, size");
  EXPECT_TRUE(
      again(with("\"leaves\":[", "\"leaves\":[{},")).starts_with("tree: leaves: expected 0"));
  EXPECT_TRUE(again(with("\"schema\":7", "\"schema\":8")).starts_with("tree: schema: expected "));
}

}  // namespace
}  // namespace rekernel
