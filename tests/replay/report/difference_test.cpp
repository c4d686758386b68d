#include "replay/report/difference.h"

#include <gtest/gtest.h>

#include "tests/temporary.h"

namespace rekernel {
namespace {

TEST(Difference, IsUnifiedAndNamesTheTextsByTheirLabels) {
  const Result<std::string> difference =
      unified_difference({"r4.i1.b1/kernel.cu", "a\nb\nc\n"}, {"r5.i1.b1/kernel.cu", "a\nB\nc\n"});
  ASSERT_TRUE(difference.ok()) << difference.error().message;
  EXPECT_EQ(*difference,
            "--- r4.i1.b1/kernel.cu\n+++ r5.i1.b1/kernel.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
}

TEST(Difference, OfEqualTextsIsEmpty) {
  const Result<std::string> difference = unified_difference({"a", "same\n"}, {"b", "same\n"});
  ASSERT_TRUE(difference.ok()) << difference.error().message;
  EXPECT_EQ(*difference, "");
}

TEST(Difference, TakesAnyBytesAndLabels) {
  const std::string binary("a\0b\n", 4);
  const Result<std::string> difference =
      unified_difference({"-x $(exit 3)", ""}, {"'\"; exit 3", binary});
  ASSERT_TRUE(difference.ok()) << difference.error().message;
  EXPECT_EQ(*difference, "--- -x $(exit 3)\n+++ '\"; exit 3\n@@ -0,0 +1 @@\n+" + binary);
}

TEST(Difference, OfLongTextsComesWhole) {
  std::string before, after;
  for (int line = 0; line < 20000; ++line) {
    before += "before " + std::to_string(line) + "\n";
    after += "after " + std::to_string(line) + "\n";
  }
  const Result<std::string> difference = unified_difference({"a", before}, {"b", after});
  ASSERT_TRUE(difference.ok()) << difference.error().message;
  EXPECT_NE(difference->find("\n-before 19999\n"), std::string::npos);
  EXPECT_TRUE(difference->ends_with("\n+after 19999\n"));
}

TEST(Difference, SaysWhatToInstallWhereDiffIsMissing) {
  const ScopedVariable path("PATH", "/nonexistent");
  const Result<std::string> difference = unified_difference({"a", "1\n"}, {"b", "2\n"});
  ASSERT_FALSE(difference.ok());
  EXPECT_NE(difference.error().message.find("diffutils"), std::string::npos)
      << difference.error().message;
}

}  // namespace
}  // namespace rekernel
