#include "harness/records/table.h"

#include <gtest/gtest.h>

#include "harness/records/cell_text.h"

namespace rekernel {
namespace {

const TextStyle any_width{.width = 0};

TEST(Table, MarkdownEscapesPipes) {
  const Table table{{{"a"}, {"b", true}}, {{"x|y", "1"}}};
  EXPECT_EQ(to_markdown(table), "| a | b |\n|---|---:|\n| x\\|y | 1 |\n");
}

TEST(Table, MarkdownCellsAreTextUnlessTheyAreOurMarkdown) {
  const Table table{{{.heading = "a"}, {.heading = "b", .markdown = true}}, {{"<b>`", "`x|y`"}}};
  EXPECT_EQ(to_markdown(table), "| a | b |\n|---|---|\n| &lt;b&gt;\\` | `x\\|y` |\n");
}

TEST(Table, TextColumnsLineUp) {
  const Table table{{{"name"}, {"ms", true}}, {{"–", "1.5"}, {"longer", "10.25"}}};
  EXPECT_EQ(to_text(table), "name       ms\n–         1.5\nlonger  10.25\n");
}

Table of_four_columns() {
  return {{{.heading = "name"},
           {.heading = "percentage", .right_aligned = true, .short_heading = "%"},
           {.heading = "seldom", .rank = 2},
           {.heading = "sometimes", .rank = 1}},
          {{"first", "1", "aaaaaaaaaa", "bbbbbbbbbb"}, {"second: a remark", "20", "c", "d"}}};
}

TEST(Table, ShortHeadingsAndCutsComeBeforeColumnsAreLeftOut) {
  Table table = of_four_columns();
  table.columns[0].shortened = shortened_verdict;
  const TableText laid = laid_out(table, {.width = 36});
  EXPECT_EQ(laid.text,
            "name     %  seldom      sometimes\n"
            "first    1  aaaaaaaaaa  bbbbbbbbbb\n"
            "second  20  c           d\n");
  EXPECT_TRUE(laid.left_out.empty());
  EXPECT_TRUE(laid.shortened);
  EXPECT_FALSE(laid_out(table, any_width).shortened);
}

TEST(Table, ColumnsOfTheHighestRankAreLeftOutFirst) {
  const Table table = of_four_columns();
  EXPECT_EQ(laid_out(table, any_width).left_out, std::vector<std::string>{});
  EXPECT_EQ(laid_out(table, {.width = 40}).left_out, std::vector<std::string>{"seldom"});
  EXPECT_EQ(laid_out(table, {.width = 20}).left_out,
            (std::vector<std::string>{"seldom", "sometimes"}));
  // What must stay stays, also where it does not fit.
  EXPECT_EQ(to_text(table, {.width = 5}),
            "name               %\nfirst              1\nsecond: a remark  20\n");
}

TEST(Table, LongCellsWrapAndNoLineIsTooLong) {
  const Table table{{{.heading = "round", .right_aligned = true},
                     {.heading = "idea", .wraps = true},
                     {.heading = "ms", .right_aligned = true}},
                    {{"1", "read the loop-invariant tensors through the cache", "7.5"},
                     {"2", std::string(60, 'x'), "3.4"}}};
  EXPECT_EQ(to_text(table, {.width = 40}),
            "round  idea                           ms\n"
            "    1  read the loop-invariant       7.5\n"
            "       tensors through the cache\n"
            "    2  xxxxxxxxxxxxxxxxxxxxxxxxxxxx  3.4\n"
            "       xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
            "       xxxx\n");
}

TEST(Table, ColoursAreEscapesAroundTheSameText) {
  Table table{{{.heading = "verdict", .good = "passed", .neutral = "skipped"},
               {.heading = "n", .right_aligned = true}},
              {{"passed", "1"}, {"crashed", "2"}, {"skipped", "3"}}};
  EXPECT_EQ(to_text(table, {.colour = true}),
            "\x1b[1mverdict\x1b[0m  \x1b[1mn\x1b[0m\n"
            "\x1b[32mpassed\x1b[0m   1\n"
            "\x1b[31mcrashed\x1b[0m  2\n"
            "skipped  3\n");
  EXPECT_EQ(to_text(table).find('\x1b'), std::string::npos);
}

TEST(Table, CellsCannotSpeakToATerminal) {
  const Table table{{{"name"}},
                    {{"a\x1b[2Jb\nc"},
                     {"d\xe2\x80\xae"
                      "e"}}};
  EXPECT_EQ(to_text(table, any_width), "name\na?[2Jb?c\nd?e\n");
}

TEST(Table, CsvQuotesWhatWouldEndAField) {
  const Table table{{{"a, b"}, {"c"}}, {{"say \"x\"", "two\nlines"}, {"plain", ""}}};
  EXPECT_EQ(to_csv(table), "\"a, b\",c\n\"say \"\"x\"\"\",\"two\nlines\"\nplain,\n");
}

TEST(Table, BadgesShrinkToLettersAndOtherTextsToTheStatus) {
  EXPECT_EQ(shortened_verdict("passed: strict, deterministic"), "passed: sd");
  EXPECT_EQ(shortened_verdict("passed"), "passed");
  EXPECT_EQ(shortened_verdict("stale: the kernel is not robust"), "stale");
  EXPECT_EQ(badge_legend(), "s strict, r robust, d deterministic, a any_size");
}

TEST(Table, WideAndCombiningCharactersKeepTheColumnsStraight) {
  if (terminal_columns("核") != 2) GTEST_SKIP() << "this machine has no locale C.UTF-8";
  const Table table{{{"name"}, {"ms", true}},
                    {{"核函数", "1"}, {"e\xcc\x81t", "2"}, {"plain", "3"}}};
  EXPECT_EQ(to_text(table), "name    ms\n核函数   1\ne\xcc\x81t       2\nplain    3\n");
  const Table wrapped{{{.heading = "idea", .wraps = true}}, {{"核函数核函数核函数核函数核"}}};
  EXPECT_EQ(to_text(wrapped, {.width = 25}), "idea\n核函数核函数核函数核函数\n核\n");
}

TEST(Table, PeopleAndProgramsHaveColumnsOfTheirOwn) {
  const Table table{{{.heading = "kernel"},
                     {.heading = "time", .readers = Readers::people},
                     {.heading = "share", .csv = "share_percent"},
                     {.heading = "time_ms", .readers = Readers::programs}},
                    {{"a", "1.5 ± 0.1", "57.4%", "1.5"}, {"b", no_cell, no_cell, ""}}};
  EXPECT_EQ(to_text(table),
            "kernel  time       share\na       1.5 ± 0.1  57.4%\nb       –          –\n");
  EXPECT_EQ(to_csv(table), "kernel,share_percent,time_ms\na,57.4,1.5\nb,,\n");
  EXPECT_EQ(to_markdown(table).find("time_ms"), std::string::npos);
}

TEST(Table, AnEmptyFirstCellOfCsvKeepsItsPlace) {
  EXPECT_EQ(to_csv({{{"a"}, {"b"}}, {{"", "1"}}}), "a,b\n,1\n");
}

}  // namespace
}  // namespace rekernel
