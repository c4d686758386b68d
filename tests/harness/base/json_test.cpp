#include "harness/base/json.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace rekernel {
namespace {

namespace json = boost::json;

json::value parsed(std::string_view text) {
  auto value = parse_json(text, "f.json");
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message);
  return value.ok() ? *std::move(value) : json::value();
}

std::string parse_error(std::string_view text) {
  const auto value = parse_json(text, "f.json");
  return value.ok() ? "" : value.error().message;
}

TEST(ParseJson, ReadsEveryType) {
  const json::value value = parsed(
      "{\"a\": [1, -2, 18446744073709551615, 0.5, true, null, \"\\u00e9\\n\"],\r\n\"b\": {}}\n");
  const json::array& a = value.at("a").as_array();
  EXPECT_EQ(a[0].as_int64(), 1);
  EXPECT_EQ(a[1].as_int64(), -2);
  EXPECT_EQ(a[2].as_uint64(), 18446744073709551615u);
  EXPECT_EQ(a[3].as_double(), 0.5);
  EXPECT_TRUE(a[4].as_bool());
  EXPECT_TRUE(a[5].is_null());
  EXPECT_EQ(a[6].as_string(), "\xc3\xa9\n");
  EXPECT_TRUE(value.at("b").as_object().empty());
}

TEST(ParseJson, NamesTheLine) {
  EXPECT_EQ(parse_error("{\n\"a\": 1,\n}"), "f.json: line 3: not valid JSON: syntax error");
  EXPECT_EQ(parse_error(""), "f.json: line 1: not valid JSON: incomplete JSON");
  EXPECT_EQ(parse_error("[1]\n\n[2]"), "f.json: line 3: not valid JSON: extra data");
}

TEST(ParseJson, RefusesWhatIsNotStrict) {
  for (const char* text : {"[1,]", "{'a': 1}", "[01]", "[+1]", "[.5]", "[NaN]", "[Infinity]",
                           "[1] // note", "/* note */ 1", "[\"\t\"]", "[\"\\ud800\"]", "[\"\xff\"]",
                           "[\"\xc0\x80\"]", "{a: 1}", "[1", "\"a", "{\"a\" 1}", "[tru]"}) {
    EXPECT_NE(parse_error(text), "") << text;
  }
}

TEST(ParseJson, RefusesRepeatedKeys) {
  EXPECT_EQ(parse_error("{\"a\": 1,\n \"\\u0061\": 2}"),
            "f.json: line 2: not valid JSON: the key \"a\" appears twice");
  EXPECT_EQ(parse_error("[{\"b\": {\"a\": 1, \"a\": 1}}]"),
            "f.json: line 1: not valid JSON: the key \"a\" appears twice");
  EXPECT_EQ(parse_error("[{\"a\": {\"a\": 1}}, {\"a\": 1}]"), "");
}

TEST(ParseJson, LimitsDepthAndRange) {
  EXPECT_EQ(parse_error(std::string(32, '[') + std::string(32, ']')), "");
  EXPECT_EQ(parse_error(std::string(100000, '[')), "f.json: line 1: not valid JSON: too deep");
  EXPECT_NE(parse_error("[1e999]"), "");
}

TEST(ParseJson, DoublesAreExact) {
  EXPECT_EQ(parsed("0.1").as_double(), 0.1);
  EXPECT_EQ(parsed("1.7976931348623157e308").as_double(), std::numeric_limits<double>::max());
  EXPECT_EQ(parsed("4.9406564584124654e-324").as_double(),
            std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(parsed("-0.0").as_double()));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    double value;
    const std::uint64_t bits = random();
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = pretty_json(value);
    EXPECT_EQ(parsed(text).as_double(), value) << text;
  }
}

TEST(PrettyJson, NumbersAreShortAndPlain) {
  EXPECT_EQ(pretty_json(200.0), "200.0\n");
  EXPECT_EQ(pretty_json(0.1), "0.1\n");
  EXPECT_EQ(pretty_json(-1.5e-6), "-0.0000015\n");
  EXPECT_EQ(pretty_json(1e20), "1e+20\n");
  EXPECT_EQ(pretty_json(4280000000000), "4280000000000\n");
  EXPECT_EQ(pretty_json(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615\n");
  EXPECT_THROW(pretty_json(json::array{std::nan("")}), std::logic_error);
  EXPECT_THROW(pretty_json(std::numeric_limits<double>::infinity()), std::logic_error);
}

TEST(PrettyJson, BreaksWhatDoesNotFitInHundredColumns) {
  EXPECT_EQ(pretty_json(json::value{{"a", {1, 2}}, {"b", json::object()}}),
            "{\"a\": [1, 2], \"b\": {}}\n");
  const std::string word(60, 'x');
  EXPECT_EQ(pretty_json(json::value{{"first", word}, {"second", {word, 1}}}),
            "{\n  \"first\": \"" + word + "\",\n  \"second\": [\"" + word + "\", 1]\n}\n");
  EXPECT_EQ(pretty_json(json::array{word, word}),
            "[\n  \"" + word + "\",\n  \"" + word + "\"\n]\n");
}

TEST(PrettyJson, HoldsNothingThatATerminalObeys) {
  const boost::json::value value{{"k", "\x1b[31m \xc2\x9b \xe2\x80\xae grün"}};
  const std::string text = pretty_json(value);
  EXPECT_EQ(text, "{\"k\": \"\\u001b[31m \\u009b \\u202e grün\"}\n");
  EXPECT_EQ(*parse_json(text, "f"), value);
  EXPECT_EQ(pretty_json(boost::json::value("\xff")), "\"?\"\n");
}

TEST(PrettyJson, NumbersFillLines) {
  json::array numbers;
  for (int i = 0; i < 30; ++i) numbers.push_back(1'000'000 + i);
  const std::string text = pretty_json(json::object{{"samples_ns", numbers}});
  EXPECT_TRUE(text.starts_with("{\n  \"samples_ns\": [\n    1000000, 1000001, ")) << text;
  EXPECT_TRUE(text.ends_with(", 1000029\n  ]\n}\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 + 3) << text;
}

TEST(PrettyJson, NoLineIsLongerThanHundredColumns) {
  json::array array;
  for (int i = 0; i < 60; ++i) {
    array.push_back(json::array(static_cast<std::size_t>(i), json::value(7)));
    std::size_t begin = 0;
    const std::string text = pretty_json(json::object{{"key", array}});
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      EXPECT_LE(end - begin, 100u);
    }
    EXPECT_EQ(parsed(text).at("key").as_array(), array);
  }
}

TEST(Utf8, KnowsWellFormedText) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text :
       {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xe2\x82", "a\xff", "\xc3\x28"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

/// The message after reading `text` with `read`.
template <class Read>
std::string reader_error(std::string_view text, Read read) {
  const json::value value = parsed(text);
  JsonReader root("f.json", value);
  read(root);
  const auto error = root.error();
  return error ? error->message : "";
}

TEST(JsonReader, ReadsStraightThrough) {
  const json::value value = parsed(R"({"n": 3, "r": 1, "b": true, "s": "t", "i": "_a9", "l": [1],
                 "strings": ["a", ""], "map": {"NVRTC": "13.0", "a b": "c"}})");
  JsonReader root("f.json", value);
  EXPECT_EQ(root.required("n").integer(1, 3), 3);
  EXPECT_EQ(root.required("r").real(), 1.0);
  EXPECT_TRUE(root.required("b").boolean());
  EXPECT_EQ(root.required("s").string(), "t");
  EXPECT_EQ(root.required("i").identifier(), "_a9");
  EXPECT_EQ(root.required("strings").strings(), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(root.required("map").string_map(),
            (std::map<std::string, std::string>{{"NVRTC", "13.0"}, {"a b", "c"}}));
  EXPECT_TRUE(root.has("l"));
  EXPECT_EQ(root.optional("l")->array(1, 1)[0].integer(0, 1), 1);
  EXPECT_FALSE(root.optional("absent"));
  root.no_other_keys();
  EXPECT_FALSE(root.error());
}

TEST(JsonReader, NamesThePlaceAndWhatWasExpected) {
  const auto error = [](std::string_view text) {
    return reader_error(text, [](JsonReader& root) {
      root.required("launches").array()[0].required("grid").array(1, 3)[1].integer(1, 65535);
    });
  };
  EXPECT_EQ(error(R"({"launches": [{"grid": [1, -3]}]})"),
            "f.json: launches[0].grid[1]: expected an integer from 1 to 65535, got -3");
  EXPECT_EQ(error(R"({"launches": [{"grid": [1, 3.0]}]})"),
            "f.json: launches[0].grid[1]: expected an integer from 1 to 65535, got 3.0");
  EXPECT_EQ(error(R"({"launches": [{"grid": [1, 18446744073709551615]}]})"),
            "f.json: launches[0].grid[1]: expected an integer from 1 to 65535, got "
            "18446744073709551615");
}

TEST(JsonReader, EveryGetterNamesItsType) {
  const auto error = [](std::string_view text, auto get) {
    return reader_error(text, [&](JsonReader& root) { get(root.required("k")); });
  };
  EXPECT_EQ(error("{}", [](JsonReader r) { r.real(); }), "f.json: the key \"k\" is missing");
  EXPECT_EQ(error("[]", [](JsonReader r) { r.real(); }), "f.json: expected an object, got []");
  EXPECT_EQ(error(R"({"k": "1"})", [](JsonReader r) { r.real(); }),
            "f.json: k: expected a number, got \"1\"");
  EXPECT_EQ(error(R"({"k": 1})", [](JsonReader r) { r.boolean(); }),
            "f.json: k: expected true or false, got 1");
  EXPECT_EQ(error(R"({"k": null})", [](JsonReader r) { r.string(); }),
            "f.json: k: expected a string, got null");
  EXPECT_EQ(error(R"({"k": "abc"})", [](JsonReader r) { r.string(2); }),
            "f.json: k: expected at most 2 bytes of text, got 3");
  EXPECT_EQ(error(R"({"k": "a\u0000"})", [](JsonReader r) { r.string(); }),
            "f.json: k: the text contains a NUL character");
  for (const char* text : {R"({"k": "9a"})", R"({"k": ""})", R"({"k": "a-b"})", R"({"k": 1})"}) {
    EXPECT_NE(error(text, [](JsonReader r) { r.identifier(); }), "") << text;
  }
  EXPECT_EQ(error(R"({"k": {}})", [](JsonReader r) { r.array(); }),
            "f.json: k: expected an array, got {}");
  EXPECT_EQ(error(R"({"k": [1, 2, 3, 4]})", [](JsonReader r) { r.array(1, 3); }),
            "f.json: k: expected 1 to 3 entries, got 4");
  EXPECT_EQ(error(R"({"k": {"a": 1, "b": 2}})", [](JsonReader r) { r.entries(1); }),
            "f.json: k: expected at most 1 entries, got 2");
  EXPECT_EQ(error(R"({"k": ["a", 1]})", [](JsonReader r) { r.strings(); }),
            "f.json: k[1]: expected a string, got 1");
  EXPECT_EQ(error(R"({"k": ["a", "b"]})", [](JsonReader r) { r.strings(1); }),
            "f.json: k: expected 0 to 1 entries, got 2");
  EXPECT_EQ(error(R"({"k": ["a", "bc"]})", [](JsonReader r) { r.strings(2, 1); }),
            "f.json: k[1]: expected at most 1 bytes of text, got 2");
  EXPECT_EQ(error(R"({"k": {"a": "bc"}})", [](JsonReader r) { r.string_map(1); }),
            "f.json: k.a: expected at most 1 bytes of text, got 2");
  EXPECT_EQ(error(R"({"k": ["a"]})", [](JsonReader r) { r.string_map(); }),
            "f.json: k: expected an object, got [\"a\"]");
}

TEST(JsonReader, KeepsTheFirstErrorAndReturnsDefaults) {
  const json::value value = parsed(R"({"a": "x", "b": 7, "c": "y"})");
  JsonReader root("f.json", value);
  root.required("a").integer(1, 9);
  EXPECT_EQ(root.required("b").integer(2, 9), 2);
  EXPECT_EQ(root.required("c").string(), "");
  root.no_other_keys();
  EXPECT_EQ(root.error()->message, "f.json: a: expected an integer from 1 to 9, got \"x\"");
}

TEST(JsonReader, ListsTheKnownKeys) {
  EXPECT_EQ(reader_error(R"({"a": {"b": 1, "gird": 2}})",
                         [](JsonReader& root) {
                           JsonReader a = root.required("a");
                           a.required("b");
                           a.optional("c");
                           a.no_other_keys();
                         }),
            "f.json: a: unknown key \"gird\"; known: b, c");
}

TEST(JsonReader, MessagesStayOnOneShortLine) {
  const json::value value = json::object{{"a\nb", json::string(std::string(1000, '\n'))},
                                         {"c", std::string(1 << 20, 'x')}};
  JsonReader root("f.json", value);
  root.entries().front().second.integer(0, 1);
  EXPECT_EQ(root.error()->message.find('\n'), std::string::npos);
  EXPECT_EQ(root.error()->message.rfind("f.json: \"a\\nb\": expected an integer", 0), 0u);
  EXPECT_LT(root.error()->message.size(), 160u);
}

TEST(OneLine, HoldsNothingThatATerminalObeys) {
  EXPECT_EQ(one_line("a\nb\tc\x7f"
                     "d\xc2\x9b"
                     "e\xff"
                     "é",
                     64),
            "a?b?c?d?e?é");
  EXPECT_EQ(one_line("a\u202eb\u2066c\u061cd\u200fe\u2028f", 99), "a?b?c?d?e?f");
  EXPECT_EQ(one_line("\u2013\u2026\u03a9", 99), "\u2013\u2026\u03a9");
  EXPECT_EQ(one_line("abc", 3), "abc");
  EXPECT_EQ(one_line("abcd", 3), "abc…");
  EXPECT_EQ(one_line("abé", 3), "ab…");
  EXPECT_EQ(one_line("\xc2", 3), "?");
}

TEST(JsonReader, MessagesHoldNoControlCharacters) {
  const json::value value = json::object{{"\x7f\xc2\x9b", 1}};
  JsonReader root("f.json", value);
  root.no_other_keys();
  EXPECT_EQ(root.error()->message, "f.json: unknown key \"\\u007f\\u009b\"; known: ");
  const auto twice = parse_json("{\"\x7f\": 1, \"\x7f\": 2}", "f.json");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message,
            "f.json: line 1: not valid JSON: the key \"\\u007f\" appears twice");
}

}  // namespace
}  // namespace rekernel
