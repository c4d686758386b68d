#include "harness/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

TEST(VisibleLines, KeepLinesAndNothingElseThatATerminalObeys) {
  EXPECT_EQ(visible_lines("a\n\tb\r\x1b[31m", 100), "a\n\tb??[31m");
  EXPECT_EQ(visible_lines("C1 \xc2\x9b, bidi \xe2\x80\xae, no UTF-8 \xff", 100),
            "C1 ?, bidi ?, no UTF-8 ?");
  EXPECT_EQ(visible_lines("grün", 100), "grün");
}

TEST(VisibleLines, AreCutOnceAndForAll) {
  const std::string cut = visible_lines("grünes Gras", 4);
  EXPECT_EQ(cut, "grü…");
  EXPECT_EQ(visible_lines(cut, 4), cut);
}

TEST(QuotedLines, AllBeginWithTheMark) {
  EXPECT_EQ(quoted_lines(""), "");
  EXPECT_EQ(quoted_lines("one\n\nthree"), "  | one\n  | \n  | three\n");
  EXPECT_EQ(quoted_lines("one\n"), "  | one\n");
}

TEST(CodePoint, IsTheCharactersNumber) {
  EXPECT_EQ(code_point("A"), 0x41u);
  EXPECT_EQ(code_point("\xc2\x9b"), 0x9Bu);
  EXPECT_EQ(code_point("\xe2\x80\xae"), 0x202Eu);
  EXPECT_EQ(code_point("\xf0\x9f\x98\x80"), 0x1F600u);
}

}  // namespace
}  // namespace rekernel
