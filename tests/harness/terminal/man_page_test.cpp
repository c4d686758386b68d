#include "harness/terminal/man_page.h"

#include <gtest/gtest.h>

#include "a_page.h"

namespace rekernel {
namespace {

TEST(ManPage, HasASectionForEachPartOfThePage) {
  const std::string page =
      man_page("problem measure", "a measurement", testing::a_page(), {"1.2.3", "2026-11-23"});
  EXPECT_TRUE(page.starts_with(
      ".TH REKERNEL\\-PROBLEM\\-MEASURE 1 \"2026-11-23\" \"rekernel 1.2.3\" \"Rekernel\"\n"))
      << page;
  std::size_t at = 0;
  for (const char* part :
       {".SH NAME\nrekernel\\-problem\\-measure \\- a measurement\n", ".SH SYNOPSIS\n",
        ".SH DESCRIPTION\nMeasures things.\n.PP\n", ".SH ARGUMENTS\n.TP\n\\fBPROBLEM\\fR\n",
        ".SH EXAMPLES\n", ".SH OPTIONS\n.SS Measuring\n.TP\n\\fB\\-\\-samples N\\fR\n",
        ".SS Output\n", ".SH \"EXIT STATUS\"\n", ".SH \"SEE ALSO\"\n"}) {
    const std::size_t found = page.find(part, at);
    EXPECT_NE(found, std::string::npos) << part << "\n" << page;
    at = found;
  }
}

TEST(ManPage, SetsWhatRoffWouldObey) {
  Page page;
  page.description = ".so /etc/passwd\n'quoted\nback\\slash";
  const std::string text = man_page("x", "y", page, {"1", ""});
  EXPECT_NE(text.find("\n\\&.so /etc/passwd\n\\&\\(aqquoted\nback\\eslash\n"), std::string::npos)
      << text;
}

TEST(ManPage, TheOverviewNamesThePages) {
  const std::string text = man_overview(
      "What it is.", {{"Problems", {{"problem check", "reads them"}}}}, {{"0", "good"}}, {"1", ""});
  EXPECT_NE(text.find(".SS Problems\n.TP\n\\fBproblem check\\fR\nreads them\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\\fBrekernel\\-problem\\-check\\fR(1)\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace rekernel
