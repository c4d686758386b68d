#include "replay/trajectory/event.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <stdexcept>

namespace rekernel {
namespace {

namespace json = boost::json;

TEST(CanonicalJson, KeepsTheOrderOfMembersAndEscapesWhatJsonMust) {
  const json::value value{{"b", 1}, {"a", json::array{true, nullptr, "x\"\\\n\t\r\x01 é"}}};
  EXPECT_EQ(canonical_json(value), "{\"b\":1,\"a\":[true,null,\"x\\\"\\\\\\n\\t\\r\\u0001 é\"]}");
}

TEST(CanonicalJson, EscapesTheSameBytesWhereverTheyStand) {
  for (int code = 1; code < 0x100; ++code) {
    std::string escaped(1, static_cast<char>(code));
    if (code < 0x20) {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
      escaped = code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : text;
    } else if (code == '"' || code == '\\') {
      escaped.insert(0, 1, '\\');
    }
    for (std::size_t before = 0; before < 10; ++before) {
      const std::string left(before, '~'), right(17 - before, ' ');
      EXPECT_EQ(canonical_json(json::string(left + static_cast<char>(code) + right)),
                '"' + left + escaped + right + '"')
          << code << " after " << before;
    }
  }
}

TEST(CanonicalJson, HoldsTheWholeRangeOfIntegers) {
  const json::array numbers{INT64_MIN, UINT64_MAX};
  EXPECT_EQ(canonical_json(numbers), "[-9223372036854775808,18446744073709551615]");
}

TEST(CanonicalJson, RefusesFloatingPointNumbers) {
  EXPECT_THROW(canonical_json(json::value(0.5)), std::logic_error);
  EXPECT_EQ(canonical_json(json::object{{"a", 1}, {"chain", 2}, {"b", 3}}, "chain"),
            "{\"a\":1,\"b\":3}");
}

TEST(Event, IsOfAKindAndAnId) {
  const json::object event{{"event", "stop"}, {"id", "r1"}};
  EXPECT_TRUE(is_event(event, "stop", "r1"));
  EXPECT_FALSE(is_event(event, "stop", "r"));
  EXPECT_FALSE(is_event(event, "stop"));
  EXPECT_FALSE(is_event(event, "sto", "r1"));
  EXPECT_TRUE(is_event({{"event", "stop"}}, "stop"));
  EXPECT_FALSE(is_event({{"event", 1}}, "stop"));
}

TEST(EventChain, IsTheHashOverThePastAndTheEvent) {
  // echo -n 'rekernel trajectory 1' | sha256sum
  EXPECT_EQ(chain_start(), "f61f240df4a844201c9cf998b9cec18f0304150155cc6fecb675ebc470defca1")
      << "the start value is part of the format";
  const std::string chain = next_chain(chain_start(), "{\"event\":\"stop\"}");
  EXPECT_NE(chain, next_chain(chain, "{\"event\":\"stop\"}"));
  EXPECT_EQ(event_line("{\"event\":\"stop\"}", "12"), "{\"event\":\"stop\",\"chain\":\"12\"}\n");
}

std::string round_trip(const std::string& bytes) {
  json::object event;
  put_text(event, "text", bytes);
  const auto parsed = parse_json(canonical_json(event), "event");
  JsonReader reader("event", *parsed);
  const std::string text = take_text(reader, "text");
  return reader.error() ? reader.error()->message : text;
}

TEST(EventText, BringsAnyBytesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes :
       {std::string(), std::string("plain é ✓"), std::string("\xff"), std::string("\xff\xfe"),
        std::string("\xff\xfe\xfd"), std::string("a\0b", 3), all}) {
    EXPECT_EQ(round_trip(bytes), bytes);
  }
}

TEST(EventText, StoresWhatIsNoTextAsBase64) {
  json::object event;
  put_text(event, "text", "\xff\x00ok");
  EXPECT_TRUE(event.contains("text_base64"));
  EXPECT_EQ(event.at("text_base64"), "/w==");  // the literal ends at its NUL
}

TEST(EventText, RefusesBase64ThatItWouldNotWrite) {
  for (const char* text :
       {"/w=", "/x==", "/w==x", "a", "*w==", " /w==", "/w==\n", "====", "/w==/w=="}) {
    const json::value event{{"text_base64", text}};
    JsonReader reader("event", event);
    take_text(reader, "text");
    ASSERT_TRUE(reader.error()) << text;
    EXPECT_EQ(reader.error()->message, "event: text_base64: not valid base64");
  }
}

TEST(EventText, ReadsAnEmptyText) {
  const json::value event{{"text_base64", ""}};
  JsonReader reader("event", event);
  EXPECT_EQ(take_text(reader, "text"), "");
  EXPECT_FALSE(reader.error());
}

TEST(ShortTexts, AreCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("aé", 2), "a…");
  EXPECT_EQ(printable("a\xff\x01z\n", 10), "a??z\n");
}

TEST(TokenEstimate, IsFourBytesEach) {
  EXPECT_EQ(estimated_tokens(0), 0);
  EXPECT_EQ(estimated_tokens(1), 1);
  EXPECT_EQ(estimated_tokens(4), 1);
  EXPECT_EQ(estimated_tokens(5), 2);
}

TEST(EventTitle, IsOneLineWhateverTheEventSays) {
  EXPECT_EQ(event_title({{"event", "stop\n"}, {"id", "\x1b[2J\xc2\x9b\x7f"}}), "stop? ?[2J??");
}

}  // namespace
}  // namespace rekernel
