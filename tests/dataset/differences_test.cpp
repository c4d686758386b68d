#include "harness/dataset/differences.h"

#include <gtest/gtest.h>

#include <deque>

namespace rekernel {
namespace {

TEST(Differences, AreThoseOfEachPairAlone) {
  const std::deque<std::string> texts{"a\nb\nc\n",
                                      "a\nx\nc\n",
                                      "",
                                      "new\n",
                                      "diff -r -u --text a/0 b/0\n--- old\n",
                                      "diff -r -u --text a/0 b/0\n+++ old",
                                      "same",
                                      "same",
                                      std::string("bytes \xff\n"),
                                      "none\n"};
  std::vector<TextPair> pairs;
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    pairs.push_back({{"before " + std::to_string(i), texts[i]}, {"after", texts[i + 1]}});
  }
  TextComparer comparer;
  const auto all = comparer.differences(pairs);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto alone = unified_difference(pairs[i].before, pairs[i].after);
    ASSERT_TRUE(alone);
    EXPECT_EQ((*all)[i], *alone) << i;
  }
  EXPECT_EQ((*all)[3], "");
}

TEST(Differences, ComeInTheOrderOfManyPairs) {
  std::deque<std::string> texts;
  std::vector<TextPair> pairs;
  for (int i = 0; i < 450; ++i) {
    texts.push_back("line " + std::to_string(i) + "\n");
    pairs.push_back({{"before", "line\n"}, {"after", texts.back()}});
  }
  TextComparer comparer;
  const auto all = comparer.differences(pairs);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_TRUE((*all)[i].ends_with("+" + texts[i])) << i << ": " << (*all)[i];
  }
  EXPECT_TRUE(comparer.differences({})->empty());
  const auto fewer = comparer.differences(std::span(pairs).first(2));
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_EQ(*fewer, std::vector<std::string>(all->begin(), all->begin() + 2));
}

}  // namespace
}  // namespace rekernel
