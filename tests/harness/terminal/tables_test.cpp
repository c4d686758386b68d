#include "harness/terminal/tables.h"

#include <gtest/gtest.h>

#include "harness/terminal/window.h"

namespace rekernel {
namespace {

TEST(OutputColumns, AreTheTerminalsThenTheVariablesThenAPages) {
  EXPECT_EQ(output_columns(237, "80"), 237u);
  EXPECT_EQ(output_columns(0, "150"), 150u);
  EXPECT_EQ(output_columns(0, nullptr), page_columns);
  for (const char* bad : {"", "wide", "80x", "0", "-5", "99999999999999999999999"}) {
    EXPECT_EQ(output_columns(0, bad), page_columns) << bad;
  }
  EXPECT_EQ(output_columns(12, nullptr), 40u) << "narrower ones break the lines themselves";
  EXPECT_EQ(output_columns(0, "1"), 40u);
}

Table of_a_kernel() {
  Table table{{{.heading = "kernel"},
               {.heading = "clock MHz", .right_aligned = true, .rank = 2},
               {.heading = "verdict", .shortened = shortened_verdict}},
              {{"a_kernel_with_a_name", "1980", "passed: strict, robust"}}};
  table.legend = badge_legend();
  return table;
}

TEST(TableFormat, SaysWhatItLeftOutAndWhatLettersMean) {
  const TableFormat narrow{{.width = 40}};
  EXPECT_EQ(narrow.shown(of_a_kernel()),
            "kernel                verdict\n"
            "a_kernel_with_a_name  passed: sr\n"
            "\ns strict, r robust, d deterministic, a\nany_size.\n"
            "\nLeft out for want of room: clock MHz.\n--wide shows them.\n");
  const TableFormat wide{{.width = 0}};
  EXPECT_EQ(wide.shown(of_a_kernel()),
            "kernel                clock MHz  verdict\n"
            "a_kernel_with_a_name       1980  passed: strict, robust\n");
}

TEST(TableFormat, WordsStayReadableOnAWideTerminal) {
  const TableFormat format{{.width = 300}};
  const std::string text = format.words(std::string(80, 'a') + " " + std::string(80, 'b'));
  EXPECT_EQ(text, std::string(80, 'a') + "\n" + std::string(80, 'b') + "\n");
  EXPECT_EQ((TableFormat{{}, true}).words("words"), "");
}

}  // namespace
}  // namespace rekernel
