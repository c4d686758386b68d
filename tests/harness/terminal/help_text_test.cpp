#include "harness/terminal/help_text.h"

#include <gtest/gtest.h>

#include "a_page.h"

namespace rekernel {
namespace {

TEST(HelpText, SaysAllThatThePageSays) {
  EXPECT_EQ(help_text("measure", "a measurement", testing::a_page(), 60),
            "Usage: rekernel measure PROBLEM [KERNEL…] [options]\n"
            "\n"
            "a measurement\n"
            "\n"
            "Measures things.\n"
            "\n"
            "'Quoted' words, and a second paragraph.\n"
            "\n"
            "Arguments:\n"
            "  PROBLEM    what to measure\n"
            "  [KERNEL…]  how\n"
            "\n"
            "Examples:\n"
            "  rekernel measure softmax\n"
            "  # One alone\n"
            "  rekernel measure softmax one\n"
            "\n"
            "Measuring:\n"
            "  --samples N            timed samples (10 to 100; default\n"
            "                         60)\n"
            "  --pytorch auto|on|off  time PyTorch too (default auto)\n"
            "\n"
            "Output:\n"
            "  --json         print JSON\n"
            "  --note TEXT …  a note\n"
            "  --into DIR     where\n"
            "\n"
            "Exit status:\n"
            "  0  good\n"
            "  1  a verdict failed\n"
            "  2  bad usage or input: a line on standard error says what\n"
            "     was expected\n");
}

TEST(ItemList, PutsALongTermOnALineOfItsOwn) {
  const std::string term(30, 'x');
  EXPECT_EQ(item_list({{"a", "one"}, {term, "two"}}, 60), "  a  one\n  " + term + "\n     two\n");
  EXPECT_EQ(item_list({}, 60), "");
}

}  // namespace
}  // namespace rekernel
