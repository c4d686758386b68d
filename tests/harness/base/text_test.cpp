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

TEST(SecondsText, IsExactToAMillisecond) {
  using std::chrono_literals::operator""ms;
  using std::chrono_literals::operator""s;
  EXPECT_EQ(seconds_text(0ms), "0 s");
  EXPECT_EQ(seconds_text(900ms), "0.9 s");
  EXPECT_EQ(seconds_text(1'234ms), "1.234 s");
  EXPECT_EQ(seconds_text(90s), "90 s");
  EXPECT_EQ(seconds_text(86'400s), "86400 s");
}

TEST(Nearest, IsTheWordThatMayHaveBeenMeant) {
  const std::vector<std::string> words = {"softmax", "layernorm", "conv2d", "conv2d_relu_maxpool"};
  EXPECT_EQ(nearest("sofmax", words), "softmax");
  EXPECT_EQ(nearest("sfotmax", words), "softmax");
  EXPECT_EQ(nearest("layer_norm", words), "layernorm");
  EXPECT_EQ(nearest("conv3d", words), "conv2d");
  EXPECT_EQ(nearest("softmax", words), "softmax");
  EXPECT_EQ(nearest("poetry", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(10'000, 'x'), words), "");
}

TEST(Counted, IsEnglish) {
  EXPECT_EQ(counted(0, "complaint"), "0 complaints");
  EXPECT_EQ(counted(1, "complaint"), "1 complaint");
  EXPECT_EQ(counted(2, "complaint"), "2 complaints");
}

}  // namespace
}  // namespace rekernel
