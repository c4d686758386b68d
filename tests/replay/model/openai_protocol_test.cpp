#include "replay/model/openai_protocol.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

const ModelRequest request{"r1.ideas", "one", "the prompt"};

Endpoint endpoint_at(const std::string& address) {
  Endpoint endpoint;
  endpoint.record.name = "one";
  endpoint.record.base_url = address;
  return endpoint;
}

/// What is read of a body that comes in pieces of so many bytes.
std::variant<ModelReply, AnswerFault> read_body(const std::string& body, std::size_t piece = 7) {
  const Endpoint endpoint = endpoint_at("https://a/v1");
  const auto answer = openai_protocol(endpoint, 0)->new_answer();
  for (std::size_t at = 0; at < body.size(); at += piece) {
    EXPECT_TRUE(answer->take(std::string_view(body).substr(at, piece)));
  }
  return answer->read();
}

TEST(OpenAiProtocol, PutsARequestAsTheEndpointWantsIt) {
  Endpoint endpoint = endpoint_at("https://a/v1/");
  endpoint.key = "secret";
  endpoint.record.ask_as = "one-2025";
  endpoint.record.body = R"({"temperature": 1})";
  endpoint.record.stream = true;
  const auto protocol = openai_protocol(endpoint, 50);
  EXPECT_EQ(protocol->address(), "https://a/v1/chat/completions");
  EXPECT_EQ(protocol->headers(), (std::vector<std::string>{"Content-Type: application/json",
                                                           "Authorization: Bearer secret"}));
  EXPECT_EQ(json::parse(protocol->request(request).body), json::parse(R"({
    "temperature": 1, "model": "one-2025", "messages": [{"role": "user", "content": "the prompt"}],
    "max_completion_tokens": 50, "stream": true, "stream_options": {"include_usage": true}})"));
  endpoint.key = "";
  EXPECT_EQ(protocol->headers().size(), 1u);
}

TEST(OpenAiProtocol, TriesTheOtherNameOfTheLimitOnce) {
  const Endpoint endpoint = endpoint_at("https://a/v1");
  const auto protocol = openai_protocol(endpoint, 50);
  const ChatRequest first = protocol->request(request);
  const std::string body = "unknown field max_completion_tokens";
  EXPECT_FALSE(protocol->adapt_to_refusal(401, body, first)) << "a key is missing";
  EXPECT_FALSE(protocol->adapt_to_refusal(400, "no such model", first));
  EXPECT_EQ(protocol->adapt_to_refusal(400, body, first), "does not take max_completion_tokens");
  const ChatRequest second = protocol->request(request);
  EXPECT_EQ(second.limit, "max_tokens");
  EXPECT_EQ(protocol->adapt_to_refusal(422, body, first), "does not take max_completion_tokens")
      << "sent before the other name was known";
  EXPECT_FALSE(protocol->adapt_to_refusal(400, "unknown field max_tokens", second));
}

TEST(OpenAiProtocol, NoticesALimitThatIsIgnored) {
  const Endpoint endpoint = endpoint_at("https://a/v1");
  const auto protocol = openai_protocol(endpoint, 50);
  ModelReply reply;
  EXPECT_FALSE(protocol->adapt_to_reply(reply)) << "nobody counted";
  reply.completion_tokens = 50;
  EXPECT_FALSE(protocol->adapt_to_reply(reply));
  reply.completion_tokens = 51;
  EXPECT_EQ(protocol->adapt_to_reply(reply), "ignores max_completion_tokens");
  EXPECT_FALSE(protocol->adapt_to_reply(reply)) << "there is no third name";
  EXPECT_FALSE(openai_protocol(endpoint, 0)->adapt_to_reply(reply)) << "no limit was asked for";
}

TEST(OpenAiProtocol, KnowsWhatARetryCanFix) {
  const Endpoint endpoint = endpoint_at("https://a/v1");
  const auto protocol = openai_protocol(endpoint, 0);
  for (const long status : {408, 409, 425, 429, 500, 503}) {
    const AnswerFault fault = protocol->refusal(status, "later", request);
    EXPECT_FALSE(fault.lasting) << status;
    EXPECT_EQ(fault.what, "HTTP status " + std::to_string(status));
    EXPECT_EQ(fault.hint, "");
  }
  for (const long status : {400, 401, 403, 404, 308}) {
    EXPECT_TRUE(protocol->refusal(status, "no", request).lasting) << status;
  }
  const std::string broke = R"({"error": {"type": "insufficient_quota"}})";
  EXPECT_TRUE(protocol->refusal(429, broke, request).lasting);
}

TEST(OpenAiProtocol, SaysWhatABodyIsThatHoldsNoReply) {
  const std::string good =
      R"({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})";
  EXPECT_EQ(std::get<ModelReply>(read_body(good)).text, "hi");
  const AnswerFault other = std::get<AnswerFault>(read_body(R"({"content": "hi"})"));
  EXPECT_TRUE(other.lasting);
  EXPECT_EQ(other.hint, " (another API? expected OpenAI's /chat/completions)");
  const AnswerFault page = std::get<AnswerFault>(read_body("<html>"));
  EXPECT_FALSE(page.lasting);
  EXPECT_NE(page.hint.find("most end in /v1"), std::string::npos);
  const AnswerFault torn = std::get<AnswerFault>(read_body(good.substr(0, 20)));
  EXPECT_EQ(torn.what, "not a chat completion");
  EXPECT_TRUE(torn.shows_body && torn.hint.empty() && !torn.lasting);
}

TEST(OpenAiProtocol, ReadsAStreamHoweverItIsCut) {
  const std::string stream =
      "data: {\"choices\": [{\"delta\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}]}\n\n"
      "data: [DONE]\n\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    EXPECT_EQ(std::get<ModelReply>(read_body(stream, piece)).text, "hi") << piece;
  }
  const AnswerFault early = std::get<AnswerFault>(
      read_body("data: {\"choices\": [{\"delta\": {\"content\": \"h\"}}]}\n\n"));
  EXPECT_EQ(early.what, "the stream ended early");
  EXPECT_FALSE(early.shows_body);
}

TEST(OpenAiProtocol, TakesNoMoreThanAnAnswerMayHave) {
  const Endpoint endpoint = endpoint_at("https://a/v1");
  const auto answer = openai_protocol(endpoint, 0)->new_answer();
  const std::string most(max_answer_bytes, 'x');
  EXPECT_TRUE(answer->take(most));
  EXPECT_FALSE(answer->take("x"));
}

}  // namespace
}  // namespace rekernel
