#include "harness/base/text.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Wrapped, BreaksLinesAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("a b\n\nc d e", 3), "a b\n\nc d\ne");
  EXPECT_EQ(wrapped("", 10), "");
  EXPECT_EQ(wrapped("short", 10), "short");
  EXPECT_EQ(wrapped("any length", 0), "any length");
}

TEST(Wrapped, LeavesWhatIsThere) {
  EXPECT_EQ(wrapped("  a b\n\n  c d\n", 5), "  a b\n\n  c d\n");
  EXPECT_EQ(wrapped("https://example.com/a/long/path x", 10), "https://example.com/a/long/path\nx");
}

TEST(Wrapped, BreaksLongWordsWhereItMay) {
  EXPECT_EQ(wrapped("abcdefghij", 4, 0, LongWords::broken), "abcd\nefgh\nij");
  EXPECT_EQ(wrapped("ab abcdefghij k", 4, 1, LongWords::broken), "ab\n abc\n def\n ghi\n j k");
  EXPECT_EQ(wrapped("äöüäöü", 3, 0, LongWords::broken), "äöü\näöü");
  EXPECT_EQ(wrapped("     x", 3, 0, LongWords::broken), "x");
}

TEST(Wrapped, CountsCharactersNotBytes) { EXPECT_EQ(wrapped("ééé ééé", 7), "ééé ééé"); }

TEST(Counted, IsEnglish) {
  EXPECT_EQ(counted(0, "complaint"), "0 complaints");
  EXPECT_EQ(counted(1, "complaint"), "1 complaint");
  EXPECT_EQ(counted(2, "complaint"), "2 complaints");
}

}  // namespace
}  // namespace rekernel
