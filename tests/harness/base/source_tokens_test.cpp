#include "harness/base/source_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace rekernel {
namespace {

/// With a bar after each token.
std::string cpp(std::string_view source) {
  std::string tokens = cpp_tokens(source);
  std::replace(tokens.begin(), tokens.end(), '\0', '|');
  return tokens;
}

std::string python(std::string_view source) {
  std::string lines = python_tokens(source);
  std::replace(lines.begin(), lines.end(), '\0', '|');
  return lines;
}

std::string tokens_of_json(std::string_view text) {
  constexpr std::array<std::string_view, 1> without = {"title"};
  std::string tokens = json_tokens(text, without);
  std::replace(tokens.begin(), tokens.end(), '\0', '|');
  return tokens;
}

TEST(CppTokens, WhiteSpaceAndCommentsSayNothing) {
  EXPECT_EQ(cpp("int a=b+1;"), "int|a|=|b|+|1|;|");
  EXPECT_EQ(cpp("  int a // why\n =\tb /* more\n than a line */+ 1 ;\r\n"), cpp("int a=b+1;"));
  EXPECT_EQ(cpp("a /**/ b"), "a|b|");
  EXPECT_EQ(cpp("a // a comment that goes on \\\n b\nc"), "a|c|");
  EXPECT_EQ(cpp("// lone \" and ' quotes\na"), "a|");
}

TEST(CppTokens, TokensThatDifferStayApart) {
  EXPECT_NE(cpp("int a"), cpp("inta"));
  EXPECT_NE(cpp("a + +b"), cpp("a ++b"));
  EXPECT_NE(cpp("a - -b"), cpp("a --b"));
  EXPECT_NE(cpp("a < b"), cpp("a <= b"));
  EXPECT_EQ(cpp("x->y<<=z<=>w...::"), "x|->|y|<<=|z|<=>|w|...|::|");
}

TEST(CppTokens, NumbersAreWhole) {
  EXPECT_EQ(cpp("1'000.5e-3f+0x1p-4 -.5"), "1'000.5e-3f|+|0x1p-4|-|.5|");
  EXPECT_EQ(cpp("1-2"), "1|-|2|");
  EXPECT_EQ(cpp("f(1,'a')"), "f|(|1|,|'a'|)|");
}

TEST(CppTokens, LiteralsAreAsTheyStand) {
  EXPECT_EQ(cpp(R"(x = "a // b  /* c */";)"), R"(x|=|"a // b  /* c */"|;|)");
  EXPECT_EQ(cpp(R"("a\"b" '\'' u8"c" L'd')"), R"("a\"b"|'\''|u8"c"|L'd'|)");
  EXPECT_NE(cpp("\"a b\""), cpp("\"a  b\""));
  EXPECT_EQ(cpp("R\"cuda(// stays\n #include \"x\"\n)\" )cuda\" b"),
            "R\"cuda(// stays\n #include \"x\"\n)\" )cuda\"|b|");
  EXPECT_EQ(cpp("FOOR\"(a)\""), "FOOR|\"(a)\"|") << "a name that ends like a prefix";
}

TEST(CppTokens, IncludesAreLeftOutAndOtherDirectivesAreLines) {
  EXPECT_EQ(cpp("#include \"a.h\"  // why\n # include <b>\nint a;"), "int|a|;|");
  EXPECT_EQ(cpp("#define A 1\nint a;"), "#|define|A|1|\n|int|a|;|");
  EXPECT_NE(cpp("#define A 1\nint a;"), cpp("#define A 1 int a;\n"));
  EXPECT_NE(cpp("#define A(x) x\n"), cpp("#define A (x) x\n"));
  EXPECT_EQ(cpp("#define A 1 \\\n  + 2\n"), cpp("#define A 1 + 2\n"));
  EXPECT_EQ(cpp("#error don't\nint a;"), "#|error|don|'t|\n|int|a|;|");
}

TEST(CppTokens, WhatEndsTooSoonEndsWithItsSource) {
  for (const char* source :
       {"\"a", "'", "R\"(a", "R\"a", "/* a", "// a", "#", "#define", "\"a\\"}) {
    EXPECT_NO_THROW(cpp(source)) << source;
  }
}

TEST(PythonTokens, CommentsAndEmptyLinesSayNothing) {
  EXPECT_EQ(python("# why\nif a:  # because\n\n    b()   \n"), "if a:|    b()|");
  EXPECT_NE(python("if a:\n    b()\n    c()"), python("if a:\n    b()\nc()"));
}

TEST(PythonTokens, StringsAreAsTheyStand) {
  EXPECT_EQ(python("a = '# no comment'  # one\n"), "a = '# no comment'|");
  EXPECT_EQ(python("a = 'it\\'s # one'\n"), "a = 'it\\'s # one'|");
  EXPECT_EQ(python("a = \"\"\"one\n\n # two\n\"\"\"\nb"), "a = \"\"\"one\n\n # two\n\"\"\"|b|");
  EXPECT_EQ(python("a = ''  # empty\nb = 'open\nc"), "a = ''|b = 'open|c|");
}

TEST(JsonTokens, WhiteSpaceAndCommasSayNothing) {
  EXPECT_EQ(tokens_of_json("{\"a\" : [1,\n\t-2.5e3 , true]}"), "{|\"a\"|:|[|1|-2.5e3|true|]|}|");
  EXPECT_EQ(tokens_of_json(R"({"a b": "c, \" }"})"), R"({|"a b"|:|"c, \" }"|}|)");
  EXPECT_NE(tokens_of_json("[1, 2]"), tokens_of_json("[12]"));
}

TEST(JsonTokens, EntriesOfTheOutermostObjectCanBeLeftOut) {
  EXPECT_EQ(tokens_of_json(R"({"title": {"x": [1, 2]}, "a": 1})"), "{|\"a\"|:|1|}|");
  EXPECT_EQ(tokens_of_json(R"({"a": {"title": 1}, "title": "b"})"),
            "{|\"a\"|:|{|\"title\"|:|1|}|}|");
  EXPECT_EQ(tokens_of_json(R"({"a": "title", "b": ["title"]})"),
            R"({|"a"|:|"title"|"b"|:|[|"title"|]|}|)");
}

TEST(JsonTokens, WhatIsNoJsonHasTokensToo) {
  for (const char* text : {"", "\"", "\"a\\", "}}}", "{\"title\"", "{,:,", "nul"}) {
    EXPECT_NO_THROW(tokens_of_json(text)) << text;
  }
}

}  // namespace
}  // namespace rekernel
