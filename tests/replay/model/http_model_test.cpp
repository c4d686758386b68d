#include "replay/model/http_model.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/json.hpp>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "harness/base/file_descriptor.h"
#include "harness/base/json.h"
#include "replay/model/openai_protocol.h"
#include "tests/replay/fakes.h"
#include "tests/replay/model/http_server.h"

namespace rekernel {
namespace {

using testing::completion;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using Milliseconds = std::chrono::milliseconds;

constexpr const char* key_variable = "REKERNEL_TEST_KEY";
using Headers = std::map<std::string, std::string>;
constexpr const char* sent_key = "sk-secret-0123456789";

AskingOptions quick() {
  AskingOptions options;
  options.attempts = 3;
  options.first_pause = Milliseconds(10);
  options.total_timeout = Milliseconds(5000);
  return options;
}

struct Answers {
  std::vector<std::optional<ModelReply>> replies;
  std::optional<Interruption> interruption;
};

std::vector<Endpoint> endpoints_of(const std::vector<ModelSettings>& models,
                                   const EndpointWish& wish = {}) {
  auto endpoints = resolve_endpoints(models, ModelsFrom::owner, {}, wish);
  if (!endpoints) throw std::runtime_error(endpoints.error().message);
  return *endpoints;
}

/// Asks `count` requests, r1.i1.b1 and on, of the model "one" at this address.
Answers ask(const std::string& url, std::size_t count, const AskingOptions& options = quick(),
            const char* variable = "", const EndpointWish& wish = {}) {
  HttpModel model(endpoints_of({{"one", url, variable}}, wish), openai_protocol, options);
  std::vector<ModelRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back(
        {"r1.i1.b" + std::to_string(i + 1), "one", "prompt " + std::to_string(i + 1)});
  }
  Answers answers;
  answers.replies.resize(count);
  answers.interruption = model.ask(requests, [&](std::size_t i, ModelReply reply) {
    EXPECT_FALSE(answers.replies[i]) << "answered twice";
    answers.replies[i] = std::move(reply);
    return Reception{};
  });
  return answers;
}

TEST(OpenAi, SendsThePromptAndTakesTheReply) {
  ::setenv(key_variable, sent_key, 1);
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("hi é")};
  });
  AskingOptions options = quick();
  options.reply_tokens = 77;
  const Answers answers = ask(server.url() + "/", 1, options, key_variable);
  ::unsetenv(key_variable);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_EQ(answers.replies[0]->text, "hi é");
  EXPECT_EQ(answers.replies[0]->prompt_tokens, 11);
  EXPECT_EQ(answers.replies[0]->completion_tokens, 22);
  EXPECT_FALSE(answers.replies[0]->truncated);
  const HttpRequest request = server.requests().at(0);
  EXPECT_TRUE(request.head.starts_with("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_NE(request.head.find(std::string("Authorization: Bearer ") + sent_key), std::string::npos);
  const auto body = boost::json::parse(request.body);
  EXPECT_EQ(body.at("model"), "one");
  EXPECT_EQ(body.at("messages").at(0).at("content"), "prompt 1");
  EXPECT_EQ(body.at("max_completion_tokens"), 77);
}

TEST(OpenAi, SaysWhenTheReplyWasCut) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("```cuda\n", "length")};
  });
  EXPECT_TRUE(ask(server.url(), 1).replies[0]->truncated);
}

TEST(OpenAi, RecordsARefusalAsSuch) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "",
                      R"({"choices": [{"message": {"content": null, "refusal": "no"}}]})"};
  });
  const Answers answers = ask(server.url(), 1);
  EXPECT_EQ(answers.replies[0]->text, "");
  EXPECT_EQ(answers.replies[0]->failure, "the model gave no text: no");
  EXPECT_FALSE(answers.replies[0]->prompt_tokens);
}

TEST(OpenAi, KeepsBytesThatAreNoText) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", "{\"choices\": [{\"message\": {\"content\": \"a\xff\"}}]}"};
  });
  EXPECT_EQ(ask(server.url(), 1).replies[0]->text, "a\xff");
}

TEST(OpenAi, TriesAgainAfterWhatPasses) {
  HttpServer server([](int number, const HttpRequest&) {
    if (number == 0) return HttpAnswer{"429 Too Many Requests", "", "{}"};
    if (number == 1) return HttpAnswer{"503 Unavailable", "", "later"};
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  const Answers answers = ask(server.url(), 1);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_EQ(answers.replies[0]->text, "good");
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(OpenAi, TriesAgainAfterBrokenAnswersAndConnections) {
  HttpServer server([](int number, const HttpRequest&) {
    if (number == 0) return HttpAnswer{"200 OK", "", "{\"choices\": [{\"mess"};
    HttpAnswer hang_up;
    hang_up.hang_up = true;
    if (number == 1) return hang_up;
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  EXPECT_EQ(ask(server.url(), 1).replies[0]->text, "good");
}

TEST(OpenAi, HeedsRetryAfter) {
  HttpServer server([](int number, const HttpRequest&) {
    if (number == 0) return HttpAnswer{"429 Too Many Requests", "Retry-After: 1\r\n", "{}"};
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(server.url(), 1).replies[0]->text, "good");
  EXPECT_GE(std::chrono::steady_clock::now() - start, Milliseconds(1000));
}

TEST(OpenAi, DoesNotHeedAnUnreasonableRetryAfter) {
  HttpServer server([](int number, const HttpRequest&) {
    if (number == 0) return HttpAnswer{"503 Unavailable", "Retry-After: 86400\r\n", "{}"};
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  AskingOptions options = quick();
  options.longest_pause = Milliseconds(50);
  EXPECT_EQ(ask(server.url(), 1, options).replies[0]->text, "good");
}

TEST(OpenAi, GivesUpAfterItsAttempts) {
  HttpServer server([](int, const HttpRequest&) { return HttpAnswer{"500 Oops", "", "broken"}; });
  const Answers answers = ask(server.url(), 1);
  ASSERT_TRUE(answers.interruption);
  EXPECT_EQ(answers.interruption->kind, Interruption::Kind::failed);
  EXPECT_EQ(
      answers.interruption->message,
      "model one, request r1.i1.b1, " + server.url() +
          "/chat/completions: HTTP status 500: broken, after 3 attempts; the same command goes on "
          "from here, --resume also with another --base-url, --ask-as or --key-variable");
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(OpenAi, GivesUpOnASlowServer) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("late"), 600};
  });
  AskingOptions options = quick();
  options.total_timeout = Milliseconds(100);
  options.attempts = 2;
  const Answers answers = ask(server.url(), 1, options);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find("Timeout was reached (1 s), after 2 attempts"),
            std::string::npos)
      << answers.interruption->message;
}

TEST(OpenAi, DoesNotRepeatWhatCannotSucceedAndHidesTheKey) {
  ::setenv(key_variable, sent_key, 1);
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"401 Unauthorized", "", std::string("bad key ") + sent_key};
  });
  const Answers answers = ask(server.url(), 1, quick(), key_variable);
  ::unsetenv(key_variable);
  ASSERT_TRUE(answers.interruption);
  EXPECT_EQ(answers.interruption->message,
            "model one, request r1.i1.b1, " + server.url() +
                "/chat/completions: HTTP status 401: bad key [key]; the same command goes on from "
                "here, --resume also with another --base-url, --ask-as or --key-variable");
  EXPECT_EQ(server.requests().size(), 1u);
  const Answers without = ask(server.url(), 1, quick(), key_variable);
  EXPECT_NE(
      without.interruption->message.find("(the environment variable REKERNEL_TEST_KEY is not set)"),
      std::string::npos);
}

TEST(OpenAi, DoesNotWaitForCreditThatIsSpent) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"429 Too Many Requests", "",
                      R"({"error": {"code": "insufficient_quota", "message": "pay first"}})"};
  });
  const Answers answers = ask(server.url(), 1);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find("pay first"), std::string::npos);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(OpenAi, HidesAKeyThatTheAnswerEscapes) {
  const ScopedVariable variable(key_variable, sent_key);
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"401 Unauthorized", "", R"({"error": "bad key sk\u002dsecret-0123456789"})"};
  });
  const Answers answers = ask(server.url(), 1, quick(), key_variable);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find(R"({"error":"bad key [key]"})"), std::string::npos)
      << answers.interruption->message;
}

TEST(OpenAi, ReadsWhatIsCompressed) {
  // gzip of {"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}
  const std::string_view body(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x0d\xc8\xb1\x0d\x80\x40\x08\x05\xd0\x5d"
      "\x7e\xed\x04\xb7\x8a\x31\xe6\x42\x50\x28\x84\x8b\xd0\x11\x76\xd7\x57\xbe\x02\x89"
      "\x2b\x71\x60\xec\x85\x87\x23\xe6\xcd\x18\x05\x72\x4b\xb6\xc4\x80\x28\x7a\xc3\xa5"
      "\xa6\x21\xe7\xcb\x33\xdc\xfe\x8d\xf4\x85\x3e\xfa\x03\xb1\x15\x25\xe9\x41\x00\x00"
      "\x00",
      81);
  HttpServer server([&](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "Content-Encoding: gzip\r\n", std::string(body)};
  });
  const Answers answers = ask(server.url(), 1);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_EQ(answers.replies[0]->text, "hi");
}

TEST(OpenAi, RecordsAHugeAnswerAsAFailure) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", std::string(6 * max_reply_bytes + (2u << 20), 'x')};
  });
  AskingOptions options = quick();
  options.total_timeout = Milliseconds(60000);
  const Answers answers = ask(server.url(), 1, options);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_TRUE(answers.replies[0]->failure.starts_with("the answer has more than "));
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(OpenAi, AsksAtOnceWithinItsLimit) {
  HttpServer server([](int, const HttpRequest& request) {
    const auto body = boost::json::parse(request.body);
    const std::string prompt(body.at("messages").at(0).at("content").as_string());
    return HttpAnswer{"200 OK", "", completion("to " + prompt), 60};
  });
  AskingOptions options = quick();
  options.concurrency = 3;
  const Answers answers = ask(server.url(), 9, options);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(answers.replies[i]->text, "to prompt " + std::to_string(i + 1));
  }
  EXPECT_LE(server.most_at_once(), 3);
  EXPECT_GE(server.most_at_once(), 2);
}

TEST(OpenAi, AwaitsPaidRepliesWhenAnotherRequestFails) {
  HttpServer server([](int, const HttpRequest& request) {
    if (request.body.find("prompt 1\"") != std::string::npos)
      return HttpAnswer{"400 Bad", "", "no"};
    return HttpAnswer{"200 OK", "", completion("good"), 100};
  });
  const Answers answers = ask(server.url(), 2);
  EXPECT_TRUE(answers.interruption);
  ASSERT_TRUE(answers.replies[1]);
  EXPECT_EQ(answers.replies[1]->text, "good");
}

TEST(OpenAi, CutsAnEchoedKeyOutOfTheReply) {
  const ScopedVariable variable(key_variable, sent_key);
  HttpServer server([](int, const HttpRequest& request) {
    const std::size_t at = request.head.find("Bearer ");
    return HttpAnswer{"200 OK", "", completion("you sent " + request.head.substr(at + 7, 20))};
  });
  EXPECT_EQ(ask(server.url(), 1, quick(), key_variable).replies[0]->text, "you sent [key]");
}

TEST(OpenAi, AsksThisMachinePastProxies) {
  const ScopedVariable variable(key_variable, sent_key);
  HttpServer proxy([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("from the proxy")};
  });
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("from the server")};
  });
  const std::string address = proxy.url().substr(0, proxy.url().size() - 3);
  const ScopedVariable lower("http_proxy", address);
  const ScopedVariable all("ALL_PROXY", address);
  const ScopedVariable none("no_proxy", "");
  EXPECT_EQ(ask(server.url(), 1, quick(), key_variable).replies[0]->text, "from the server");
  EXPECT_TRUE(proxy.requests().empty());
}

TEST(OpenAi, TellsNoPasswordOfAProxy) {
  AskingOptions options = quick();
  options.attempts = 1;
  const auto told = [&](const std::string& proxy) {
    const ScopedVariable variable("https_proxy", proxy);
    return ask("https://example.invalid/v1", 1, options).interruption->message;
  };
  EXPECT_EQ(told("http://me:password@127.0.0.1:99999").find("password"), std::string::npos);
  EXPECT_EQ(told("none://me:password@127.0.0.1:1").find("password"), std::string::npos);
  EXPECT_NE(told("http://me:password@127.0.0.1:1").find("Failed to connect to 127.0.0.1 port 1"),
            std::string::npos);
}

TEST(OpenAi, ShowsNoCommandsToTheTerminal) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"400 Bad", "", "a\x1b[2J\n\u009b2J\u202eb"};
  });
  const Answers answers = ask(server.url(), 1);
  EXPECT_NE(answers.interruption->message.find("HTTP status 400: a?[2J??2J?b;"), std::string::npos)
      << answers.interruption->message;
}

TEST(OpenAi, SendsWhatTheOwnerAddsAndAsksUnderAnotherName) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("a")};
  });
  EndpointWish wish;
  wish.ask_as = "one-2025";
  wish.headers = Headers{{"X-Project", "kernels"}};
  wish.body = R"({"temperature": 0.7, "reasoning": {"effort": "high"}})";
  ask(server.url(), 1, quick(), "", wish);
  const HttpRequest request = server.requests().at(0);
  EXPECT_NE(request.head.find("X-Project: kernels"), std::string::npos) << request.head;
  const auto body = boost::json::parse(request.body);
  EXPECT_EQ(body.at("model"), "one-2025");
  EXPECT_EQ(body.at("temperature"), 0.7);
  EXPECT_EQ(body.at("reasoning").at("effort"), "high");
  EXPECT_FALSE(body.as_object().contains("stream"));
}

TEST(OpenAi, FindsOutHowTheEndpointCallsTheLimit) {
  HttpServer server([](int, const HttpRequest& request) {
    if (request.body.find("max_completion_tokens") != std::string::npos) {
      return HttpAnswer{"400 Bad", "", R"({"error": "unknown field max_completion_tokens"})"};
    }
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  AskingOptions options = quick();
  options.reply_tokens = 50;
  options.concurrency = 2;
  options.attempts = 1;  // what the endpoint does not know costs no attempt
  std::vector<std::string> said;
  options.say = [&](const std::string& text) { said.push_back(text); };
  const Answers answers = ask(server.url(), 4, options);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_EQ(boost::json::parse(server.requests().back().body).at("max_tokens"), 50);
  EXPECT_LE(server.requests().size(), 6u);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("does not take max_completion_tokens"), std::string::npos) << said[0];
  // What the owner laid down stays.
  EndpointWish wish;
  wish.limit_field = "max_completion_tokens";
  EXPECT_TRUE(ask(server.url(), 1, options, "", wish).interruption);
}

TEST(OpenAi, LimitsRepliesByTheOtherNameWhereTheFirstIsIgnored) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("x")};
  });
  AskingOptions options = quick();
  options.reply_tokens = 5;  // the server counts 22
  options.concurrency = 1;
  ask(server.url(), 2, options);
  EXPECT_TRUE(boost::json::parse(server.requests().at(0).body)
                  .as_object()
                  .contains("max_completion_tokens"));
  EXPECT_EQ(boost::json::parse(server.requests().at(1).body).at("max_tokens"), 5);
}

TEST(OpenAi, SaysWhyAndWhenItTriesAgain) {
  HttpServer server([](int number, const HttpRequest&) {
    if (number == 0) return HttpAnswer{"429 Too Many Requests", "", "slow down"};
    return HttpAnswer{"200 OK", "", completion("good")};
  });
  AskingOptions options = quick();
  std::vector<std::string> said;
  options.say = [&](const std::string& text) { said.push_back(text); };
  ask(server.url(), 1, options);
  EXPECT_EQ(said, (std::vector<std::string>{
                      "model one, " + server.url() +
                      "/chat/completions: HTTP status 429: slow down; r1.i1.b1 again in 1 s "
                      "(attempt 2 of 3)"}));
}

TEST(OpenAi, KeepsTheDeadlineInAPauseAndInAHangingRequest) {
  using Clock = std::chrono::steady_clock;
  HttpServer busy([](int, const HttpRequest&) { return HttpAnswer{"503 Busy", "", ""}; });
  HttpServer hanging([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("late"), 1500};
  });
  for (const std::string& url : {busy.url(), hanging.url()}) {
    AskingOptions options = quick();
    options.first_pause = Milliseconds(60000);
    options.longest_pause = Milliseconds(60000);
    const auto start = Clock::now();
    options.deadline = start + Milliseconds(150);
    const Answers answers = ask(url, 2, options);
    EXPECT_LT(Clock::now() - start, Milliseconds(1400));
    ASSERT_TRUE(answers.interruption);
    EXPECT_EQ(answers.interruption->kind, Interruption::Kind::waiting);
    EXPECT_TRUE(answers.interruption->message.starts_with(
        "the deadline passed while 2 replies were awaited (r1.i1.b"))
        << answers.interruption->message;
  }
}

TEST(OpenAi, ReadsAStreamHoweverItIsCut) {
  const std::string stream =
      ": hello\r\n\r\nevent: message\ndata: {\"choices\": [{\"delta\": {\"role\": "
      "\"assistant\"}}]}\n\n"
      "data: {\"choices\": [{\"delta\": {\"content\": \"caf\u00e9 \"}, \"finish_reason\": "
      "null}]}\n\n"
      "data: {\"choices\": [{\"delta\": {\"content\": \"au lait\"}, \"finish_reason\": "
      "\"stop\"}]}\n\n"
      "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 4}}\n\n"
      "data: [DONE]\n\n";
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    HttpServer server([&](int, const HttpRequest&) {
      HttpAnswer answer{"200 OK", "Content-Type: text/event-stream\r\n"};
      for (std::size_t at = 0; at < stream.size(); at += size) {
        answer.pieces.push_back(stream.substr(at, size));
      }
      return answer;
    });
    EndpointWish wish;
    wish.stream = true;
    const Answers answers = ask(server.url(), 1, quick(), "", wish);
    ASSERT_FALSE(answers.interruption) << answers.interruption->message;
    EXPECT_EQ(answers.replies[0]->text, "café au lait");
    EXPECT_EQ(answers.replies[0]->prompt_tokens, 3);
    EXPECT_EQ(answers.replies[0]->completion_tokens, 4);
    EXPECT_EQ(boost::json::parse(server.requests().at(0).body).at("stream"), true);
  }
}

TEST(OpenAi, DoesNotTakeAnUnfinishedStreamForAReply) {
  const std::string beginning = "data: {\"choices\": [{\"delta\": {\"content\": \"half\"}}]}\n\n";
  HttpServer server([&](int number, const HttpRequest&) {
    HttpAnswer answer{"200 OK", "Content-Type: text/event-stream\r\n"};
    answer.pieces = {beginning};
    if (number == 1)
      answer.pieces.push_back("data: {\"error\": {\"message\": \"overloaded\"}}\n\n");
    if (number == 2) {
      answer.pieces.push_back(
          "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"length\"}]}\n\n");
    }
    return answer;
  });
  AskingOptions options = quick();
  std::vector<std::string> said;
  options.say = [&](const std::string& text) { said.push_back(text); };
  const Answers answers = ask(server.url(), 1, options);
  ASSERT_FALSE(answers.interruption) << answers.interruption->message;
  EXPECT_EQ(answers.replies[0]->text, "half");
  EXPECT_TRUE(answers.replies[0]->truncated);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("the stream ended early"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("overloaded"), std::string::npos) << said[1];
}

TEST(OpenAi, NamesAnotherProtocolAndAWrongAddress) {
  HttpServer other([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", R"({"type": "message", "content": [{"text": "hi"}]})"};
  });
  const Answers answers = ask(other.url(), 1);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find("another API? expected OpenAI's /chat/completions"),
            std::string::npos)
      << answers.interruption->message;
  EXPECT_EQ(other.requests().size(), 1u);
  HttpServer nowhere([](int, const HttpRequest&) { return HttpAnswer{"404 Not Found", "", ""}; });
  EXPECT_NE(ask(nowhere.url(), 1).interruption->message.find("most end in /v1"), std::string::npos);
  HttpServer page([](int, const HttpRequest&) { return HttpAnswer{"200 OK", "", "<html>"}; });
  EXPECT_NE(ask(page.url(), 1).interruption->message.find("most end in /v1"), std::string::npos);
  HttpServer moved([](int, const HttpRequest&) {
    return HttpAnswer{"308 Moved", "Location: https://new.example.com/v1/chat/completions?a=b\r\n",
                      ""};
  });
  EXPECT_NE(ask(moved.url(), 1)
                .interruption->message.find(
                    "it redirects to https://new.example.com/v1/chat/completions, and the key is "
                    "not sent there"),
            std::string::npos)
      << ask(moved.url(), 1).interruption->message;
}

TEST(OpenAi, TellsAWrongModelFromAWrongAddress) {
  const auto message = [](const std::string& status, const std::string& says) {
    HttpServer server([&](int, const HttpRequest&) {
      return HttpAnswer{status, "", R"({"error": {"message": ")" + says + R"("}})"};
    });
    const Answers answers = ask(server.url(), 1);
    EXPECT_EQ(server.requests().size(), 1u);
    return answers.interruption ? answers.interruption->message : std::string("answered");
  };
  const std::string hint = "(asked for is \"one\"; --ask-as gives the name that is known there)";
  for (const auto& [status, says] : std::map<std::string, std::string>{
           {"404 Not Found", "The model `one` does not exist."},
           {"400 Bad Request", "Invalid model name passed in model=one."}}) {
    EXPECT_NE(message(status, says).find(hint), std::string::npos) << message(status, says);
  }
  EXPECT_NE(message("404 Not Found", "no such page").find("most end in /v1"), std::string::npos);
  EXPECT_NE(message("400 Bad Request", "This model's maximum context length is 4096 tokens.")
                .find("a new search with --prompt-tokens asks in shorter prompts"),
            std::string::npos);
}

TEST(OpenAi, NamesAServerThatSpeaksNoTls) {
  HttpServer server([](int, const HttpRequest&) { return HttpAnswer{}; });
  const std::string url = server.url();
  const Answers answers = ask("https" + url.substr(url.find(':')), 1);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find("(no TLS is spoken there; expected http://"),
            std::string::npos)
      << answers.interruption->message;
}

/// A port whose connections end as soon as they are made.
class ClosedDoor {
 public:
  ClosedDoor() : listener_(testing::listen_on_loopback(port_)) {
    thread_ = std::jthread([this] {
      while (true) {
        const FileDescriptor visitor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!visitor.is_open()) return;
        ++visits_;
      }
    });
  }
  ~ClosedDoor() { ::shutdown(listener_.get(), SHUT_RDWR); }
  int port() const { return port_; }
  int visits() const { return visits_; }

 private:
  int port_ = 0;
  FileDescriptor listener_;
  std::atomic<int> visits_ = 0;
  std::jthread thread_;
};

TEST(OpenAi, TriesAgainWhereAHandshakeBreaks) {
  const ClosedDoor door;
  const Answers answers = ask("https://127.0.0.1:" + std::to_string(door.port()) + "/v1", 1);
  ASSERT_TRUE(answers.interruption);
  EXPECT_NE(answers.interruption->message.find("after 3 attempts"), std::string::npos)
      << answers.interruption->message;
  EXPECT_EQ(door.visits(), 3);
}

/// A whole search against the server: rate limits, a cut reply and broken ones on the way.
TEST(OpenAi, CarriesASearchFromEndToEnd) {
  TemporaryFolder folder;
  ::setenv(key_variable, sent_key, 1);
  std::atomic<int> hiccups = 0;
  HttpServer server([&](int number, const HttpRequest& request) {
    if (number % 4 == 1) {
      ++hiccups;
      return HttpAnswer{"429 Too Many Requests", "", "{}"};
    }
    if (number % 7 == 3) return HttpAnswer{"200 OK", "", "<html>"};
    const auto body = boost::json::parse(request.body);
    const std::string prompt(body.at("messages").at(0).at("content").as_string());
    if (prompt.find("Propose 2 ideas") != std::string::npos) {
      return HttpAnswer{"200 OK", "", completion("[\"Wider loads\", \"Fewer passes\"]")};
    }
    if (prompt.find("attempt 2 of 2") != std::string::npos) {
      return HttpAnswer{"200 OK", "", completion("```cuda\n", "length"), 20};
    }
    return HttpAnswer{"200 OK", "", completion(testing::kernel_reply("good"))};
  });
  Header header = testing::small_header(2);
  header.settings.models = {{"one", server.url(), key_variable}, {"two", server.url(), ""}};
  AskingOptions options = quick();
  options.attempts = 8;
  HttpModel model(endpoints_of(header.settings.models), openai_protocol, options);
  testing::FakeEvaluator evaluator;
  const SearchEnd end = testing::run_on_file(folder / "t.jsonl", header, model, evaluator);
  ::unsetenv(key_variable);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_GT(hiccups, 0);
  const std::string text = testing::read_text(folder / "t.jsonl");
  EXPECT_EQ(text.find(sent_key), std::string::npos);
  const Replay replay = replay_exactly(folder / "t.jsonl");
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  ASSERT_EQ(replay.search.candidates.size(), 8u);
  EXPECT_EQ(replay.search.candidates[1].outcome.message,
            "the reply's cuda block is not closed: it was cut off (the model stopped at its limit "
            "of length)");
  EXPECT_EQ(replay.search.prompt_tokens, 11 * 10);
  EXPECT_EQ(replay.search.completion_tokens, 22 * 10);
}

}  // namespace
}  // namespace rekernel
