#include "harness/terminal/suggestion.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using Names = std::vector<std::string>;

const Names options = {"record", "samples", "device", "devices", "gpus", "json"};

TEST(Suggestions, AreTheNearestTwoAtMost) {
  EXPECT_EQ(suggestions("recrod", options), Names{"record"});
  EXPECT_EQ(suggestions("devise", options), (Names{"device", "devices"}));
  EXPECT_EQ(suggestions("aab", {"aaa", "aac", "aad"}).size(), 2u);
}

TEST(Suggestions, MayBeginWithWhatWasWritten) {
  const Names kernels = {"cluster_with_prefetch", "clustered_rows", "clusters_of_eight", "online"};
  EXPECT_EQ(suggestions("cluster", kernels), (Names{"cluster_with_prefetch", "clustered_rows"}));
  EXPECT_EQ(suggestions("onl", kernels), Names{"online"});
  EXPECT_EQ(suggestions("on", kernels), Names{}) << "too little to tell";
}

TEST(Suggestions, AreNoneForWhatIsNearNothing) {
  EXPECT_EQ(suggestions("frobnicate", options), Names{});
  EXPECT_EQ(suggestions("", options), Names{});
  EXPECT_EQ(suggestions("record", {}), Names{});
}

TEST(DidYouMean, FollowsTheUnknownName) {
  EXPECT_EQ(did_you_mean("jsno", options), " (did you mean 'json'?)");
  EXPECT_EQ(did_you_mean("devise", options), " (did you mean 'device' or 'devices'?)");
  EXPECT_EQ(did_you_mean("frobnicate", options), "");
}

}  // namespace
}  // namespace rekernel
