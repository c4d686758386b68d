#include "harness/base/markdown.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Markdown, TextStaysText) {
  EXPECT_EQ(markdown_text("matmul_fp32: 57.3% (c[0, 0]) ≥ 1"), "matmul_fp32: 57.3% (c[0, 0]) ≥ 1");
}

TEST(Markdown, NoHtmlLinkPictureCodeOrLineComesOfIt) {
  EXPECT_EQ(markdown_text("<img src=x onerror=y>&amp;"), "&lt;img src=x onerror=y&gt;&amp;amp;");
  EXPECT_EQ(markdown_text("![a](b) [c][d]"), "![a\\](b) [c\\][d]");
  EXPECT_EQ(markdown_text("a | b\n| c `d` \\"), "a \\| b \\| c \\`d\\` \\\\");
  EXPECT_EQ(markdown_text("see https://example.org or www.example.org"),
            "see https&#58;//example.org or www&#46;example.org");
  EXPECT_EQ(markdown_text("a\x1b[2J"), "a?[2J");
}

TEST(Markdown, LinesAreKeptWhereTheyAreOurs) {
  EXPECT_EQ(markdown_lines("a\n<b>\n"), "a\n&lt;b&gt;\n");
  EXPECT_EQ(markdown_lines(""), "");
}

TEST(Markdown, CodeCannotBeLeft) {
  EXPECT_EQ(markdown_code("a``b\nc"), "`` a''b?c ``");
  EXPECT_EQ(markdown_code(""), "");
}

}  // namespace
}  // namespace rekernel
