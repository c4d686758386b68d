#include "harness/terminal/arguments.h"

#include <gtest/gtest.h>

#include "a_page.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {
namespace {

namespace po = boost::program_options;

using Words = std::vector<std::string>;

struct Outcome {
  ParsedArguments parsed;
  std::string error;
};

Outcome parse(const Words& words) {
  ::testing::internal::CaptureStderr();
  ParsedArguments parsed =
      parse_arguments(Arguments("measure", "measures", words), testing::a_page());
  return {std::move(parsed), ::testing::internal::GetCapturedStderr()};
}

TEST(Arguments, AreReadByThePage) {
  const auto [parsed, error] = parse({"softmax", "one", "two", "--samples", "20", "--json"});
  ASSERT_FALSE(parsed.exit_status) << error;
  EXPECT_EQ(parsed.get<std::string>("problem"), "softmax");
  EXPECT_EQ(parsed.get<Words>("kernel"), (Words{"one", "two"}));
  EXPECT_EQ(parsed.get<int>("samples"), 20);
  EXPECT_EQ(parsed.get<std::string>("pytorch"), "auto");
  EXPECT_FALSE(parsed.given("pytorch"));
  EXPECT_TRUE(parsed.flag("json"));
}

TEST(Arguments, RememberTheOptionsAsTheyWereGiven) {
  const auto [parsed, error] = parse({"softmax", "--note=a b", "--json", "--note", "c"});
  ASSERT_EQ(parsed.options.size(), 3u) << error;
  EXPECT_EQ(parsed.options[0].name, "note");
  EXPECT_EQ(parsed.options[0].values, Words{"a b"});
  EXPECT_EQ(parsed.options[1].name, "json");
  EXPECT_TRUE(parsed.options[1].values.empty());
  EXPECT_EQ(parsed.options[2].values, Words{"c"});
}

TEST(Arguments, ThatAreBadAreOneLine) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "expected PROBLEM"},
      {{"x", "--sampels", "3"}, "unknown option '--sampels' (did you mean '--samples'?)"},
      {{"x", "--samples", "9"}, "--samples: expected 10 to 100"},
      {{"x", "--samples", "101"}, "--samples: expected 10 to 100"},
      {{"x", "--samples", "20 "}, "--samples: expected 10 to 100"},
      {{"x", "--samples", ""}, "--samples: expected 10 to 100"},
      {{"x", "--samples", "99999999999999999999"}, "--samples: expected 10 to 100"},
      {{"x", "--pytorch", "offf"},
       "--pytorch offf (did you mean 'off'?): expected auto, on or off"},
  };
  for (const auto& [words, message] : cases) {
    const auto [parsed, error] = parse(words);
    EXPECT_EQ(parsed.exit_status, exit_bad_input);
    EXPECT_EQ(error, "rekernel: measure: " + message + "; see rekernel help measure\n");
  }
}

TEST(Arguments, PrintThePageOnRequest) {
  for (const char* word : {"-h", "--help"}) {
    ::testing::internal::CaptureStdout();
    const auto [parsed, error] = parse({word});
    EXPECT_TRUE(::testing::internal::GetCapturedStdout().starts_with("Usage: rekernel measure "));
    EXPECT_EQ(parsed.exit_status, exit_good) << error;
  }
}

TEST(Arguments, CanAskForThePageAlone) {
  std::optional<Page> page;
  const ParsedArguments parsed = parse_arguments(Arguments("measure", page), testing::a_page());
  EXPECT_EQ(parsed.exit_status, exit_good);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->positionals().size(), 2u);
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadItOtherwise) {
  EXPECT_EQ(shell_word("http://localhost:8000/v1"), "http://localhost:8000/v1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("$A 'b'"), "'$A '\\''b'\\'''");
  EXPECT_EQ(shell_word("*"), "'*'");
}

}  // namespace
}  // namespace rekernel
