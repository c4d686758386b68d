#include "replay/chat_completion.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/response.h"

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
