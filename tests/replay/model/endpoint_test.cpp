#include "replay/model/endpoint.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using Headers = std::map<std::string, std::string>;
constexpr const char* key = "sk-secret-0123456789";
const std::string openai = "https://api.openai.com/v1";

/// The only endpoint that comes out; else the error as `record.name`.
Endpoint resolved(const ModelSettings& model, ModelsFrom from, const EndpointWish& flags = {},
                  const EndpointFile& file = {}) {
  auto endpoints = resolve_endpoints({model}, from, file, flags);
  if (endpoints) return endpoints->front();
  Endpoint none;
  none.record.name = "error: " + endpoints.error().message;
  return none;
}

std::string refusal(const ModelSettings& model, const EndpointWish& flags = {}) {
  return resolved(model, ModelsFrom::recording, flags).record.name;
}

TEST(Endpoint, OfOpenAiIsTheDefaultAndItsKeyGoesNowhereElse) {
  const ScopedVariable variable("OPENAI_API_KEY", key);
  const Endpoint usual = resolved({"one"}, ModelsFrom::owner);
  EXPECT_EQ(usual.record.base_url, openai);
  EXPECT_EQ(usual.record.key_variable, "OPENAI_API_KEY");
  EXPECT_EQ(usual.key, key);
  EndpointWish wish;
  wish.base_url = "https://example.com/v1";
  const Endpoint other = resolved({"one"}, ModelsFrom::owner, wish);
  EXPECT_EQ(other.record.key_variable, "");
  EXPECT_EQ(other.key, "");
  wish.key_variable = "OPENAI_API_KEY";
  EXPECT_EQ(resolved({"one"}, ModelsFrom::owner, wish).key, key);
}

TEST(Endpoint, OfARecordingIsNotTakenFromIt) {
  const ScopedVariable variable("AWS_SECRET_ACCESS_KEY", key);
  const ModelSettings foreign{"one", "https://evil.example/v1", "AWS_SECRET_ACCESS_KEY"};
  EXPECT_TRUE(refusal(foreign).starts_with(
      "error: model one: the trajectory was recorded with the base URL "
      "\"https://evil.example/v1\", "
      "which is not taken from a trajectory: give it, or another, by --base-url or in "))
      << refusal(foreign);
  EndpointWish wish;
  wish.base_url = "https://mine.example/v1";
  EXPECT_NE(refusal(foreign, wish)
                .find("the key variable \"AWS_SECRET_ACCESS_KEY\", which is not "
                      "taken from a trajectory: give it, or another, by --key-variable"),
            std::string::npos)
      << refusal(foreign, wish);
  wish.key_variable = "";
  const Endpoint mine = resolved(foreign, ModelsFrom::recording, wish);
  EXPECT_EQ(mine.record.base_url, "https://mine.example/v1");
  EXPECT_EQ(mine.key, "");
  // OpenAI's own address with another variable.
  EXPECT_NE(refusal({"one", openai, "AWS_SECRET_ACCESS_KEY"}).find("--key-variable"),
            std::string::npos);
  EXPECT_NE(refusal({"one", openai, ""}).find("key variable none"), std::string::npos);
}

TEST(Endpoint, OfARecordingMayBeWhatItsOwnerSays) {
  const ModelSettings recorded{"one", "http://127.0.0.1:8000/v1", "MY_KEY"};
  const ScopedVariable variable("MY_KEY", key);
  EndpointWish wish;
  wish.base_url = recorded.base_url;
  wish.key_variable = "MY_KEY";
  EXPECT_EQ(resolved(recorded, ModelsFrom::recording, wish).record, recorded);
  EXPECT_EQ(resolved(recorded, ModelsFrom::recording, {}, {{"one", wish}}).record, recorded);
  EXPECT_EQ(resolved({"one", openai, "OPENAI_API_KEY"}, ModelsFrom::recording).record.base_url,
            openai);
  // A search by files had no endpoint.
  EXPECT_EQ(resolved({"one"}, ModelsFrom::recording).record.base_url, openai);
}

TEST(Endpoint, OfARecordingKeepsWhatCanDoNoHarm) {
  ModelSettings recorded{"one", openai, "OPENAI_API_KEY"};
  recorded.ask_as = "one-2025";
  recorded.timeout_s = 60;
  recorded.stream = true;
  recorded.limit_field = "max_tokens";
  EXPECT_EQ(resolved(recorded, ModelsFrom::recording).record, recorded);
  EndpointWish wish;
  wish.timeout_s = 90;
  wish.limit_field = "auto";
  const ModelSettings changed = resolved(recorded, ModelsFrom::recording, wish).record;
  EXPECT_EQ(changed.timeout_s, 90);
  EXPECT_EQ(changed.limit_field, "");
  EXPECT_EQ(changed.ask_as, "one-2025");
  recorded.body = R"({"api_base":"https://evil.example"})";
  EXPECT_NE(refusal(recorded).find("--body"), std::string::npos);
  recorded.body = "";
  recorded.headers = {"X-Forward-To"};
  EXPECT_NE(refusal(recorded).find("--header"), std::string::npos);
}

TEST(Endpoint, TakesHeadersFromTheEnvironmentAndRecordsNoValue) {
  const ScopedVariable variable("AZURE_KEY", key);
  EndpointWish wish;
  wish.headers = Headers{{"api-key", "Bearer ${AZURE_KEY}"}, {"X-Cost", "5$$ $AZURE_KEY."}};
  const Endpoint endpoint = resolved({"one"}, ModelsFrom::owner, wish);
  ASSERT_EQ(endpoint.headers.size(), 2u) << endpoint.record.name;
  EXPECT_EQ(endpoint.headers[1].value, std::string("Bearer ") + key);
  EXPECT_EQ(endpoint.headers[0].value, std::string("5$ ") + key + ".");
  EXPECT_EQ(boost::json::serialize(to_json({endpoint.record})).find(key), std::string::npos);
  EXPECT_EQ(masked(endpoint, std::string("say ") + key + "!", Masking::replies), "say [key]!");
  for (const char* bad : {"$UNSET_VARIABLE_OF_THIS_TEST", "$", "${AZURE_KEY", "a\r\nHost: b"}) {
    wish.headers = Headers{{"X-Bad", bad}};
    EXPECT_TRUE(resolved({"one"}, ModelsFrom::owner, wish).record.name.starts_with("error: "))
        << bad;
  }
}

TEST(Endpoint, MasksSecretsButNoWords) {
  Endpoint endpoint;
  endpoint.key = "none";
  EXPECT_EQ(masked(endpoint, "there is none", Masking::replies), "there is none");
  EXPECT_EQ(masked(endpoint, "bad key none", Masking::messages), "bad key [key]");
  endpoint.key = "";
  EXPECT_EQ(masked(endpoint, "text", Masking::messages), "text");
}

TEST(Endpoint, MasksTheLongestSecretFirst) {
  Endpoint endpoint;
  endpoint.key = "sk-secret";
  endpoint.headers = {{"api-key", "sk-secret-0123456789", true}};
  EXPECT_EQ(masked(endpoint, "no sk-secret-0123456789", Masking::messages), "no [key]");
}

TEST(Endpoint, RecordsNoKey) {
  const ScopedVariable variable("MY_KEY", key);
  const std::string held = "holds a key, which would be recorded";
  const auto error = [](const EndpointWish& wish) {
    return resolved({"one", openai, "MY_KEY"}, ModelsFrom::owner, wish).record.name;
  };
  EXPECT_NE(error({.base_url = std::string("https://x/") + key + "/v1"}).find(held),
            std::string::npos);
  EXPECT_NE(error({.body = std::string(R"({"user": ")") + key + "\"}"}).find(held),
            std::string::npos);
  EXPECT_NE(error({.ask_as = key}).find(held), std::string::npos);
  EXPECT_EQ(error({.ask_as = "MY_KEY"}), "one");
}

TEST(Endpoint, SendsSecretsOverHttpsOrToThisMachineAlone) {
  const ScopedVariable variable("MY_KEY", key);
  EXPECT_EQ(resolved({"one", "http://example.com/v1", "MY_KEY"}, ModelsFrom::owner).record.name,
            "error: model one: a key is sent over https only; http://example.com/v1 is not");
  EXPECT_EQ(resolved({"one", "http://example.com/v1", ""}, ModelsFrom::owner).key, "");
  EXPECT_EQ(resolved({"one", "http://localhost:1/v1", "MY_KEY"}, ModelsFrom::owner).key, key);
  for (const char* here : {"http://127.0.0.1", "http://127.0.0.1:80/v1", "http://[::1]:8/v1",
                           "https://localhost/", "http://[::1]"}) {
    EXPECT_TRUE(is_this_machine(here)) << here;
  }
  for (const char* elsewhere :
       {"http://127.0.0.1.example.com/", "http://localhost.example.com:80", "http://[::1].example",
        "http://example.com/127.0.0.1", "http://[::2]/v1", "example"}) {
    EXPECT_FALSE(is_this_machine(elsewhere)) << elsewhere;
  }
}

TEST(Endpoint, RefusesWhatCannotBeSent) {
  const auto error = [](const EndpointWish& wish) {
    return resolved({"one"}, ModelsFrom::owner, wish).record.name;
  };
  EXPECT_NE(error({.base_url = "https://me:pw@x/v1"}).find("base URL: expected"),
            std::string::npos);
  EXPECT_NE(error({.base_url = "ftp://x"}).find("base URL: expected"), std::string::npos);
  EXPECT_NE(error({.base_url = "https://x/v1/chat/completions/"})
                .find("expected the address without /chat/completions"),
            std::string::npos);
  EXPECT_NE(error({.key_variable = "a b"}).find("key variable: expected"), std::string::npos);
  EXPECT_NE(error({.body = "[1]"}).find("expected a JSON object"), std::string::npos);
  EXPECT_NE(error({.body = R"({"model": "x"})"}).find("written by the search"), std::string::npos);
  EXPECT_NE(error({.limit_field = "tokens"}).find("limit field: expected"), std::string::npos);
  EXPECT_NE(error({.timeout_s = 0}).find("timeout: expected"), std::string::npos);
  EXPECT_NE(error({.prompt_price = "-1"}).find("price: expected"), std::string::npos);
  EXPECT_NE(error({.ca_file = "/nonexistent.pem"}).find("CA file: "), std::string::npos);
}

TEST(Endpoint, IsReadFromAFileByModel) {
  TemporaryFolder folder;
  const auto path = folder / "endpoints.json";
  testing::write_text(path, R"({"models": {"one": {"base_url": "http://127.0.0.1:4000/v1",
    "key_variable": "", "ask_as": "big", "headers": {"X-A": "b"}, "body": {"temperature": 0.5},
    "timeout_s": 20, "reply_tokens": 9, "stream": true, "price": {"prompt": "1.25", "reply": "10"}}}})");
  const auto file = load_endpoint_file(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const ModelSettings record = resolved({"one"}, ModelsFrom::owner, {}, *file).record;
  EXPECT_EQ(record.base_url, "http://127.0.0.1:4000/v1");
  EXPECT_EQ(record.ask_as, "big");
  EXPECT_EQ(record.headers, std::vector<std::string>{"X-A"});
  EXPECT_EQ(record.body, R"({"temperature":5E-1})");
  EXPECT_EQ(record.reply_tokens, 9);
  EXPECT_DOUBLE_EQ(*cost_usd(record, 1000000, 200000), 3.25);
  EXPECT_FALSE(cost_usd({"two"}, 1, 1));
  for (const char* bad : {"[]", R"({"models": {"one": {"base": "x"}}})",
                          R"({"models": {"one": {"limit_field": "x"}}})", R"({"model": {}})"}) {
    testing::write_text(path, bad);
    const auto refused = load_endpoint_file(path);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_TRUE(refused.error().message.starts_with(path.string())) << refused.error().message;
  }
}

TEST(Endpoint, OfTwoModelsOfOneNameMustBeOne) {
  const auto same = resolve_endpoints({{"one"}, {"one"}}, ModelsFrom::owner, {}, {});
  EXPECT_TRUE(same.ok());
  const auto two = resolve_endpoints({{"one"}, {"one", "https://example.com/v1", ""}},
                                     ModelsFrom::owner, {}, {});
  ASSERT_FALSE(two.ok());
  EXPECT_NE(two.error().message.find("takes part twice"), std::string::npos);
}

}  // namespace
}  // namespace rekernel
