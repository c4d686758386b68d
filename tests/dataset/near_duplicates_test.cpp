#include "harness/dataset/near_duplicates.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

/// A kernel of so many statements, of which some are others.
std::string kernel(int statements, int changed = 0) {
  std::string text = "extern \"C\" __global__ void k(float* x) {\n";
  for (int i = 0; i < statements; ++i) {
    const std::string number = std::to_string(i);
    text += i < changed ? "  y" + number + " -= sqrtf(z" + number + ");\n"
                        : "  x[" + number + "] = x[" + number + "] * 2.0f + " + number + ".0f;\n";
  }
  return text + "}\n";
}

TEST(MinHash, DoesNotCountCommentsAndLayout) {
  EXPECT_EQ(min_hash("int a = 1; // one\nint b;"), min_hash("int   a=1;\n\n/* two */ int b ;"));
  EXPECT_NE(min_hash("int a = 1;"), min_hash("int a = 2;"));
}

TEST(MinHash, EstimatesTheSharedPart) {
  const double likeness = similarity(min_hash(kernel(100)), min_hash(kernel(100, 10)));
  // 10 of 100 statements are others: of the shingles, about 1/(1+2·0.1) to 9/11 are shared.
  EXPECT_GT(likeness, 0.65);
  EXPECT_LT(likeness, 0.98);
  EXPECT_EQ(similarity(min_hash(kernel(100)), min_hash(kernel(100))), 1.0);
  EXPECT_LT(similarity(min_hash(kernel(50)), min_hash("a quite different text of seven words")),
            0.1);
}

TEST(MinHash, IsTheSameEverywhere) {
  // What it must be is what it is: ids of near duplicates are published.
  const MinHash sketch = min_hash("int a = 1; int b = 2;");
  EXPECT_EQ(sketch, min_hash("int a = 1; int b = 2;"));
  EXPECT_NE(sketch[0], sketch[1]);
}

TEST(MinHash, TakesShortAndEmptyTexts) {
  EXPECT_EQ(min_hash(""), min_hash("// nothing"));
  EXPECT_NE(min_hash("a"), min_hash("b"));
  EXPECT_NE(min_hash("a"), min_hash(""));
}

TEST(NearDuplicates, NamesTheFirstThatIsMuchAlike) {
  NearDuplicates near;
  EXPECT_FALSE(near.add("first", min_hash(kernel(200))));
  const auto same = near.add("second", min_hash(kernel(200)));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->of, "first");
  EXPECT_EQ(same->similarity, 1.0);
  const auto close = near.add("third", min_hash(kernel(200, 4)));
  ASSERT_TRUE(close);
  EXPECT_EQ(close->of, "first");
  EXPECT_GE(close->similarity, NearDuplicates::threshold);
  EXPECT_FALSE(near.add("other", min_hash(kernel(200, 150))));
}

}  // namespace
}  // namespace rekernel
