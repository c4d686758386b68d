#include "replay/trajectory/settings.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

/// The message without the place, or the settings as they are written again.
std::string read_again(const std::string& text) {
  const json::value value = json::parse(text);
  JsonReader reader("s", value);
  const Settings settings = read_settings(reader);
  if (auto error = reader.error()) return error->message;
  return json::serialize(to_json(settings));
}

TEST(Settings, AreReadAsTheyWereWritten) {
  for (const char* text :
       {"{}", R"({"rounds": 2, "tries": 3, "mixed_gpus": true, "profiles": true, "chain": true,
      "models": [{"name": "one"}, {"name": "two", "base_url": "https://a/v1", "ask_as": "b",
        "headers": ["X"], "body": "{}", "limit_field": "max_tokens", "timeout_s": 5,
        "reply_tokens": 6, "stream": true, "prompt_price": "1.25", "key_variable": "KEY"}],
      "round_plans": [{"round": 1, "ideas": ["An idea."]}, {"round": 2, "parents": []}]})"}) {
    const std::string written = read_again(text);
    EXPECT_EQ(read_again(written), written) << text;
  }
}

TEST(Settings, LeaveOutWhatOldRecordingsDoNotHave) {
  const std::string written = read_again(R"({"models": [{"name": "one"}]})");
  for (const char* newer : {"tries", "mixed_gpus", "profiles", "ask_as", "stream", "timeout_s"}) {
    EXPECT_EQ(written.find(newer), std::string::npos) << newer;
  }
}

TEST(Settings, NameWhatIsWrong) {
  EXPECT_EQ(read_again(R"({"models": [{"name": ""}]})"), "s: models[0]: a model needs a name");
  EXPECT_EQ(read_again(R"({"round_plans": [{"round": 1}, {"round": 1}]})"),
            "s: round_plans[1]: a second plan for this round");
  EXPECT_EQ(read_again(R"({"round_plans": [{"round": 1, "ideas": [""]}]})"),
            "s: round_plans[0].ideas: an idea without words");
  for (const char* bad :
       {R"({"rounds": 0})", R"({"rounds": 2, "round_plans": [{"round": 3}]})",
        R"({"models": [{"name": "a", "key_variable": "A B"}]})",
        R"({"models": [{"name": "a", "base_url": "ftp://a"}]})", R"({"tokens": 1})"}) {
    EXPECT_TRUE(read_again(bad).starts_with("s: ")) << read_again(bad);
  }
}

TEST(PlainAddress, HoldsNoSecret) {
  for (const char* good : {"https://a/v1", "http://localhost:8000"}) {
    EXPECT_TRUE(is_plain_address(good)) << good;
  }
  for (const char* bad : {"https://me:word@a/v1", "https://a/v1?key=1", "https://a/#b", "a/v1",
                          "ftp://a", "https://a b", "https://a\\b", ""}) {
    EXPECT_FALSE(is_plain_address(bad)) << bad;
  }
}

TEST(EndpointsEvent, IsOfTheSearchsModels) {
  const std::vector<ModelSettings> models{{"one", "https://a/v1"}, {"two"}};
  const auto names = [&](const char* entries) {
    const json::value event{{"event", "endpoints"}, {"models", json::parse(entries)}};
    const auto read = endpoints_from_json(event.as_object(), models, "here");
    return read ? std::to_string(read->size()) : read.error().message;
  };
  EXPECT_EQ(names(R"([{"name": "one", "base_url": "https://b/v1"}, {"name": "two"}])"), "2");
  for (const char* other :
       {R"([{"name": "two"}, {"name": "one"}])", R"([{"name": "one"}])", "[]"}) {
    EXPECT_EQ(names(other), "here: models: expected the models of the search") << other;
  }
}

}  // namespace
}  // namespace rekernel
