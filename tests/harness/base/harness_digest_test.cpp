#include "harness/base/harness_digest.h"
#include "harness/problems/catalog.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using Names = std::vector<std::string>;

TEST(HarnessDigest, TheProgramCarriesTheCheckoutsDigests) {
  const Result<HarnessDigests> of_checkout = harness_digests_of(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(of_checkout.ok()) << of_checkout.error().message;
  EXPECT_TRUE(harness_digests() == *of_checkout)
      << ::testing::PrintToString(differing_sources(harness_digests(), *of_checkout));
}

TEST(HarnessDigest, ARowHasThoseOfJudgeProblemAndReferences) {
  const std::string row =
      harness_digest(digest_of_problem("softmax"), {"cudnn_softmax", "pytorch_eager"});
  EXPECT_TRUE(is_row_digest(row)) << row;
  const auto of_problems = problem_digests_of(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(of_problems.ok()) << of_problems.error().message;
  EXPECT_TRUE(row.starts_with(harness_digests().judge + "-" + of_problems->at("softmax") + "-"));
  EXPECT_EQ(row, harness_digest(digest_of_problem("softmax"),
                                {"pytorch_eager", "cudnn_softmax", "pytorch_eager"}));
  EXPECT_NE(row,
            harness_digest(digest_of_problem("layernorm"), {"cudnn_softmax", "pytorch_eager"}));
  EXPECT_NE(row, harness_digest(digest_of_problem("softmax"), {"cudnn_softmax"}));
}

TEST(HarnessDigest, AProblemThatIsNotThereHasZeros) {
  EXPECT_TRUE(harness_digest(digest_of_problem("no_such_problem"), {})
                  .starts_with(harness_digests().judge + "-0000000000000000-"));
}

TEST(HarnessDigest, OneOfEverythingIsOfTheOldKind) {
  EXPECT_FALSE(is_row_digest("0e969499a7f0c9fd"));
  EXPECT_FALSE(is_row_digest(""));
  std::string row = harness_digest(digest_of_problem("softmax"), {});
  row[0] = 'x';
  EXPECT_FALSE(is_row_digest(row));
  row = harness_digest(digest_of_problem("softmax"), {});
  row[16] = '0';
  EXPECT_FALSE(is_row_digest(row));
}

TEST(HarnessDigest, WhatDiffersIsNamed) {
  const HarnessDigests one{"1", {{"cublas_fp32", "3"}}};
  EXPECT_EQ(differing_sources(one, one), Names{});
  const HarnessDigests other{"0", {{"cublas_fp32", "4"}, {"new", "1"}}};
  EXPECT_EQ(differing_sources(one, other),
            (Names{"the judge", "reference cublas_fp32", "reference new"}));
}

}  // namespace
}  // namespace rekernel
