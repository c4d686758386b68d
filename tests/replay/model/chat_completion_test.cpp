#include "replay/model/chat_completion.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/model/response.h"

namespace rekernel {
namespace {

std::optional<ModelReply> counted(const std::string& prompt, const std::string& completion) {
  return reply_from_completion(R"({"choices": [{"message": {"content": "x"}}], "usage": )"
                               R"({"prompt_tokens": )" +
                               prompt + R"(, "completion_tokens": )" + completion + "}}");
}

TEST(ChatCompletion, ReadsTextAndCounts) {
  const auto reply = counted("5", "6");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, "x");
  EXPECT_EQ(reply->prompt_tokens, 5);
  EXPECT_EQ(reply->completion_tokens, 6);
  EXPECT_FALSE(reply->truncated);
}

TEST(ChatCompletion, JoinsTheTextsOfParts) {
  const auto reply = reply_from_completion(
      R"({"choices": [{"message": {"content": [{"text": "a"}, 3, {"text": "b"}]},)"
      R"( "finish_reason": "length"}]})");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, "ab");
  EXPECT_TRUE(reply->truncated);
}

std::optional<ModelReply> message(const std::string& members, const std::string& finish = "stop") {
  return reply_from_completion("{\"choices\": [{\"message\": {" + members +
                               "}, \"finish_reason\": \"" + finish + "\"}]}");
}

std::string text_of_content(const std::string& content) {
  return message(R"("content": ")" + content + R"(")")->text;
}

TEST(ChatCompletion, LeavesThoughtsOut) {
  EXPECT_EQ(text_of_content(R"(<think>\nHm: ```cuda\n```\n</think>\n\n1. An idea)"), "1. An idea");
  EXPECT_EQ(text_of_content(R"(Hm.</think>1. An idea)"), "1. An idea");
  EXPECT_EQ(text_of_content(R"(<think>a</think> <think>b</think> c)"), "c");
  EXPECT_EQ(text_of_content(R"( I <think> not.)"), " I <think> not.");
}

TEST(ChatCompletion, SaysWhyThereIsNoText) {
  EXPECT_EQ(message(R"("content": "")")->failure, "the model gave no text");
  EXPECT_EQ(message(R"("content": null, "refusal": "no")")->failure, "the model gave no text: no");
  EXPECT_EQ(message(R"("content": "")", "content_filter")->failure,
            "the model gave no text (it ended with \"content_filter\")");
  for (const char* thoughts :
       {R"("content": "<think>\nHm.")", R"("content": "<think>Hm.</think>\n")",
        R"("content": null, "reasoning_content": "Hm.")", R"("content": "", "reasoning": "Hm.")"}) {
    const auto reply = message(thoughts, "length");
    EXPECT_EQ(reply->failure,
              "the model gave no text after its thoughts (it stopped at its limit of length)")
        << thoughts;
    EXPECT_EQ(reply->text, "");
    EXPECT_TRUE(reply->truncated);
  }
}

TEST(ChatCompletion, SaysTheSameOfAStream) {
  const auto streamed = [](const std::string& deltas) {
    StreamedCompletion stream;
    EXPECT_TRUE(stream.take(deltas));
    return stream.reply().value_or(ModelReply{"no reply"});
  };
  const auto delta = [](const std::string& members, const std::string& finish) {
    return "data: {\"choices\": [{\"delta\": {" + members + "}, \"finish_reason\": " + finish +
           "}]}\n\n";
  };
  EXPECT_EQ(streamed(delta(R"("content": "<thi")", "null") +
                     delta(R"("content": "nk>Hm.</think>x")", "\"stop\""))
                .text,
            "x");
  EXPECT_EQ(
      streamed(delta(R"("reasoning_content": "Hm.")", "null") + delta("", "\"length\"")).failure,
      "the model gave no text after its thoughts (it stopped at its limit of length)");
}

TEST(ChatCompletion, IsNothingElse) {
  for (const char* body : {"", "Bad gateway", "[]", "{}", R"({"choices": []})",
                           R"({"choices": [{"message": "x"}]})", R"({"error": {}})"}) {
    EXPECT_FALSE(reply_from_completion(body)) << body;
  }
}

TEST(ChatCompletion, BelievesNoCountThatARecordingCouldNotHold) {
  const std::string most = std::to_string(max_counted_tokens);
  const std::string more = std::to_string(max_counted_tokens + 1);
  EXPECT_EQ(counted(most, "1")->prompt_tokens, max_counted_tokens);
  // Servers that do not count say 0.
  EXPECT_FALSE(counted("0", "0")->prompt_tokens);
  EXPECT_FALSE(counted("0", "0")->completion_tokens);
  for (const std::string& count : {more, std::to_string(INT64_MAX), std::string("-1")}) {
    const auto reply = counted(count, count);
    ASSERT_TRUE(reply);
    EXPECT_FALSE(reply->prompt_tokens) << count;
    EXPECT_FALSE(reply->completion_tokens) << count;
    const auto recorded =
        reply_from_event(response_event({"r1.ideas", "m", "p"}, *reply), "line 2");
    EXPECT_TRUE(recorded) << recorded.error().message;
  }
}

}  // namespace
}  // namespace rekernel
