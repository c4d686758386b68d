#include "replay/search/unusable_replies.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

std::vector<ModelRequest> several_requests(std::size_t count) {
  std::vector<ModelRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back({"r1.i1.b" + std::to_string(i + 1), i % 2 == 0 ? "one" : "two", ""});
  }
  return requests;
}

ReadReply prose(ReplyKind kind) {
  ModelReply reply;
  reply.text = "I would\nrather not.";
  return read_reply(kind, std::move(reply));
}

ReadReply kernel() {
  ModelReply reply;
  reply.text = testing::kernel_reply("good");
  return read_reply(ReplyKind::kernel, std::move(reply));
}

TEST(UnusableReplies, AreEnoughAtTheEndOfARound) {
  UnusableReplies unusable(2);
  const auto requests = several_requests(3);
  EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, 0, 1, prose(ReplyKind::kernel)));
  EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, 1, 1, prose(ReplyKind::kernel)));
  EXPECT_TRUE(unusable.are_enough(ReplyKind::kernel, requests, 2, 1, prose(ReplyKind::kernel)));
  EXPECT_EQ(unusable.take_note(ReplyKind::kernel, 4),
            "round 4: asked for 3 kernels, none of 3 replies was usable; the last, to r1.i1.b3 of "
            "model one, which begins \"I would rather not.\": the reply has no cuda block; "
            "expected exactly one");
}

TEST(UnusableReplies, AreFewWhereARoundIsShort) {
  UnusableReplies unusable(1);
  const auto requests = several_requests(1);
  EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, 0, 2, prose(ReplyKind::kernel)));
  EXPECT_TRUE(unusable.are_enough(ReplyKind::kernel, requests, 0, 3, prose(ReplyKind::kernel)))
      << "every reply to a request counts";
}

TEST(UnusableReplies, OfALongRoundTheFirstAreEnough) {
  UnusableReplies unusable(2);
  const auto requests = several_requests(20);
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, i, 1, prose(ReplyKind::kernel)))
        << i;
  }
  EXPECT_TRUE(unusable.are_enough(ReplyKind::kernel, requests, 11, 1, prose(ReplyKind::kernel)));
  EXPECT_NE(unusable.take_note(ReplyKind::kernel, 1).find("none of the first 12 replies"),
            std::string::npos);
}

TEST(UnusableReplies, OneThatCanBeUsedSavesTheRound) {
  UnusableReplies unusable(1);
  const auto requests = several_requests(20);
  EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, 0, 1, kernel()));
  for (std::size_t i = 1; i < requests.size(); ++i) {
    EXPECT_FALSE(unusable.are_enough(ReplyKind::kernel, requests, i, 3, prose(ReplyKind::kernel)))
        << i;
  }
}

TEST(UnusableReplies, EveryModelMayFirstFailToGiveIdeas) {
  UnusableReplies unusable(2);
  const auto requests = several_requests(1);
  EXPECT_FALSE(unusable.are_enough(ReplyKind::ideas, requests, 0, 3, prose(ReplyKind::ideas)));
  EXPECT_TRUE(unusable.are_enough(ReplyKind::ideas, requests, 0, 3, prose(ReplyKind::ideas)));
}

}  // namespace
}  // namespace rekernel
