#include "harness/base/harness_digest.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(HarnessDigest, TheBuildAndTheProgramMakeTheSameOfACheckout) {
  const Result<std::string> of_checkout = harness_digest_of(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(of_checkout.ok()) << of_checkout.error().message;
  EXPECT_EQ(harness_digest(), *of_checkout);
  EXPECT_EQ(harness_digest().size(), 16u);
}

TEST(HarnessDigest, AFolderWithoutSourcesIsAnError) {
  const Result<std::string> digest = harness_digest_of("/nowhere");
  ASSERT_FALSE(digest.ok());
  EXPECT_NE(digest.error().message.find("/nowhere/ops: cannot be read"), std::string::npos)
      << digest.error().message;
}

}  // namespace
}  // namespace rekernel
