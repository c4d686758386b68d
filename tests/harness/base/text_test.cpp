#include "harness/base/text.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Wrapped, BreaksLinesAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("", 10), "");
  EXPECT_EQ(wrapped("short", 10), "short");
}

TEST(Wrapped, LeavesWhatIsThere) {
  EXPECT_EQ(wrapped("  a b\n\n  c d\n", 5), "  a b\n\n  c d\n");
  EXPECT_EQ(wrapped("https://example.com/a/long/path x", 10), "https://example.com/a/long/path\nx");
}

TEST(Wrapped, CountsCharactersNotBytes) { EXPECT_EQ(wrapped("ééé ééé", 7), "ééé ééé"); }

}  // namespace
}  // namespace rekernel
