#include "harness/terminal/completion.h"

#include <gtest/gtest.h>

#include "a_page.h"

namespace rekernel {
namespace {

using Words = std::vector<std::string>;

CompletionSource source() {
  CompletionSource known;
  known.commands = {{"measure", "measures"}, {"problem check", "checks"}, {"problem verify", "v"}};
  known.page = [](const std::string&) { return std::optional<Page>(testing::a_page()); };
  known.names = [](Names names) {
    if (names == Names::problem) return Words{"softmax", "softmin"};
    return names == Names::kernel ? Words{"softmax/one"} : Words{};
  };
  return known;
}

Words offered(const Words& words) {
  Words terms;
  for (const Item& one : complete(words, source()).words) terms.push_back(one.term);
  return terms;
}

TEST(Completion, OfCommands) {
  EXPECT_EQ(offered({"m"}), Words{"measure"});
  EXPECT_EQ(offered({""}), (Words{"measure", "problem", "--help", "--version"}));
  EXPECT_EQ(offered({"problem", ""}), (Words{"check", "verify"}));
  EXPECT_EQ(offered({"problem", "v"}), Words{"verify"});
  EXPECT_EQ(offered({"nothing", ""}), Words{});
  EXPECT_EQ(offered({}), Words{});
}

TEST(Completion, OfArgumentsInTheirOrder) {
  EXPECT_EQ(offered({"measure", "softm"}), (Words{"softmax", "softmin"}));
  EXPECT_EQ(offered({"measure", "softmax", ""}), Words{"softmax/one"});
  EXPECT_EQ(offered({"measure", "softmax", "softmax/one", "--json", ""}), Words{"softmax/one"});
  EXPECT_EQ(offered({"measure", "--samples", "20", "softm"}), (Words{"softmax", "softmin"}));
  EXPECT_EQ(offered({"measure", "--", "softm"}), (Words{"softmax", "softmin"}));
  EXPECT_EQ(offered({"problem", "check", "softmi"}), Words{"softmin"});
}

TEST(Completion, OfOptionsThatMayStillCome) {
  EXPECT_EQ(offered({"measure", "--"}),
            (Words{"--samples", "--pytorch", "--json", "--note", "--into"}));
  EXPECT_EQ(offered({"measure", "--json", "--note", "x", "--"}),
            (Words{"--samples", "--pytorch", "--note", "--into"}));
  EXPECT_EQ(offered({"measure", "--", "--"}), Words{}) << "no option comes after --";
}

TEST(Completion, OfValues) {
  EXPECT_EQ(offered({"measure", "--pytorch", "o"}), (Words{"on", "off"}));
  EXPECT_EQ(offered({"measure", "--pytorch=o"}), (Words{"--pytorch=on", "--pytorch=off"}));
  EXPECT_EQ(offered({"measure", "--pytorch", "=", "a"}), Words{"auto"});
  EXPECT_EQ(offered({"measure", "--pytorch", "="}), (Words{"auto", "on", "off"}));
  EXPECT_EQ(offered({"measure", "--samples", ""}), Words{});
  EXPECT_TRUE(complete({"measure", "--into", ""}, source()).folders);
  EXPECT_FALSE(complete({"measure", "--into", ""}, source()).files);
}

TEST(Completion, IsALineEach) {
  Completions completions;
  completions.words = {{"a", "first"}, {"b", ""}};
  completions.folders = true;
  EXPECT_EQ(to_lines(completions), "a\tfirst\nb\n:folders\n");
  completions.files = true;
  EXPECT_EQ(to_lines(completions), "a\tfirst\nb\n:files\n") << "folders are files";
}

TEST(CompletionScript, IsForShellsThatItKnows) {
  for (const std::string& shell : shells_with_completion()) {
    EXPECT_TRUE(completion_script(shell)) << shell;
  }
  EXPECT_FALSE(completion_script("tcsh"));
}

}  // namespace
}  // namespace rekernel
