#include "replay/model/response.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

const ModelRequest asked{"r1.i1.b1", "one", std::string(10, 'p')};

TEST(ResponseEvent, HoldsWhatTheModelCounted) {
  ModelReply reply;
  reply.text = "hi\xff";
  reply.prompt_tokens = 7;
  reply.completion_tokens = 9;
  reply.truncated = true;
  const json::object event = response_event(asked, reply);
  EXPECT_EQ(event.at("id"), "r1.i1.b1");
  EXPECT_EQ(event.at("tokens"), "counted");
  const Result<ModelReply> read = reply_from_event(event, "here");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->text, reply.text);
  EXPECT_EQ(read->prompt_tokens, 7);
  EXPECT_EQ(read->completion_tokens, 9);
  EXPECT_TRUE(read->truncated);
}

TEST(ResponseEvent, EstimatesWhatTheModelDidNotCount) {
  ModelReply reply;
  reply.text = "12345678";
  reply.completion_tokens = 9;  // means nothing without the other
  const json::object event = response_event(asked, reply);
  EXPECT_EQ(event.at("prompt_tokens"), 3);
  EXPECT_EQ(event.at("completion_tokens"), 2);
  EXPECT_EQ(event.at("tokens"), "estimated");
  const Result<ModelReply> read = reply_from_event(event, "here");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->prompt_tokens || read->completion_tokens);
  EXPECT_EQ(json::serialize(response_event(asked, *read)), json::serialize(event));
}

TEST(UnusableEvent, SaysWhichAttemptAndWhy) {
  ModelReply reply;
  reply.failure = "no text";
  const json::object event = unusable_event(asked, reply, 2, "no\x1b text");
  EXPECT_EQ(event.at("event"), "unusable");
  EXPECT_EQ(event.at("attempt"), 2);
  EXPECT_EQ(event.at("reason"), "no? text");
  EXPECT_EQ(reply_from_event(event, "here")->failure, "no text");
}

TEST(ReplyFromEvent, BelievesNoCountThatNoReplyCanHave) {
  json::object event = response_event(asked, {});
  event["prompt_tokens"] = max_counted_tokens + 1;
  const Result<ModelReply> read = reply_from_event(event, "here");
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.starts_with("here: prompt_tokens: ")) << read.error().message;
}

}  // namespace
}  // namespace rekernel
