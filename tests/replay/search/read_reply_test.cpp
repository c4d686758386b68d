#include "replay/search/read_reply.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

ModelReply saying(const std::string& text) {
  ModelReply reply;
  reply.text = text;
  return reply;
}

TEST(ReadReply, HoldsWhatWasAskedFor) {
  const ReadReply ideas = read_reply(ReplyKind::ideas, saying("1. Wider loads\n2. Fewer passes"));
  ASSERT_TRUE(ideas.content) << ideas.content.error().message;
  EXPECT_EQ(ideas.unusable(), "");
  EXPECT_EQ(std::get<std::vector<Idea>>(*ideas.content).size(), 2u);

  const ReadReply kernel = read_reply(ReplyKind::kernel, saying(testing::kernel_reply("fast")));
  ASSERT_TRUE(kernel.content) << kernel.content.error().message;
  EXPECT_EQ(kernel.unusable(), "");
  const KernelReply& held = std::get<KernelReply>(*kernel.content);
  EXPECT_NE(held.source.find("// fast"), std::string::npos);
  EXPECT_TRUE(held.plan.contains("launches"));
  EXPECT_EQ(kernel.reply.text, testing::kernel_reply("fast"));
}

TEST(ReadReply, SaysWhyItCannotBeUsed) {
  EXPECT_EQ(read_reply(ReplyKind::ideas, saying("Hello.")).unusable(),
            "the reply has neither a JSON list of ideas nor a numbered list");
  EXPECT_EQ(read_reply(ReplyKind::kernel, saying("1. Wider loads")).unusable(),
            "the reply has no cuda block; expected exactly one");
  ModelReply cut = saying("```cuda\nint");
  cut.truncated = true;
  EXPECT_EQ(read_reply(ReplyKind::kernel, cut).unusable(),
            "the reply's cuda block is not closed: it was cut off (the model stopped at its limit "
            "of length)");
}

TEST(ReadReply, AsksAgainAfterAFailureWhateverTheTextHolds) {
  ModelReply reply = saying("1. Wider loads");
  reply.failure = "the model gave up";
  const ReadReply read = read_reply(ReplyKind::ideas, reply);
  EXPECT_EQ(read.unusable(), "the model gave up");
  EXPECT_TRUE(read.content) << "a reply that counts as it is may still hold ideas";
  reply.text = "Hello.";
  EXPECT_EQ(read_reply(ReplyKind::ideas, reply).content.error().message, "the model gave up");
}

}  // namespace
}  // namespace rekernel
