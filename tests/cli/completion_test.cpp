// Completion as the shells ask for it, by their own programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/problems/catalog.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

Words sorted_lines(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A folder on the path in which the program is called rekernel.
class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() { fs::create_symlink(REKERNEL_PROGRAM, programs_ / "rekernel"); }

  /// The output of a shell's script that runs in a folder.
  std::string output(const std::string& shell, const std::string& script,
                     const std::string& folder = REKERNEL_SOURCE_DIR) const {
    const std::string home = programs_.path().string();
    std::ofstream(programs_ / "script") << script;
    return testing::run_shell(
               "PATH=\"" + home + ":$PATH\" HOME=" + home + " " + shell + " " + home + "/script",
               folder)
        .output;
  }

  static bool is_installed(const std::string& shell) {
    return testing::run_shell("command -v " + shell, "/").exit_status == 0;
  }

  TemporaryFolder programs_{fs::temp_directory_path()};
};

class BashCompletion : public CompletionTest {
 protected:
  /// What bash would offer for a line that it cut into these words.
  Words offered(const Words& words, const std::string& folder = REKERNEL_SOURCE_DIR) const {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    const std::string script =
        "eval \"$(rekernel completion bash)\"\n"
        "complete -p rekernel >/dev/null || exit 1\n"
        "compopt() { :; }\n"
        "COMP_WORDS=(rekernel" +
        line + ")\nCOMP_CWORD=" + std::to_string(words.size()) +
        "\n_rekernel\n((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    return sorted_lines(output("bash", script, folder));
  }
};

TEST_F(BashCompletion, CompletesCommands) {
  EXPECT_EQ(offered({"be"}), Words{"bench"});
  EXPECT_EQ(offered({"problem", ""}), (Words{"check", "import", "mutants", "verify"}));
  EXPECT_EQ(offered({"help", "problem", "ver"}), Words{"verify"});
  EXPECT_TRUE(has(offered({"--v"}), "--version"));
  EXPECT_EQ(offered({"frobnicate", ""}), Words{});
}

TEST_F(BashCompletion, CompletesOptionsAndTheirWords) {
  EXPECT_EQ(offered({"bench", "--py"}), Words{"--pytorch"});
  EXPECT_EQ(offered({"bench", "--pytorch", "o"}), (Words{"off", "on"}));
  EXPECT_EQ(offered({"bench", "--pytorch", "=", "a"}), Words{"auto"});
  EXPECT_EQ(offered({"bench", "--pytorch", "="}), (Words{"auto", "eager", "off", "on"}));
  EXPECT_FALSE(has(offered({"bench", "--record", "--"}), "--record")) << "it is there already";
  EXPECT_TRUE(has(offered({"search", "x", "--model", "a", "--"}), "--model")) << "may be repeated";
}

TEST_F(BashCompletion, CompletesTheNamesThatTheProjectHas) {
  EXPECT_EQ(offered({"evaluate", "softmax/cluster"}), Words{"softmax/cluster_with_prefetch"});
  const auto soft = std::count_if(catalog().begin(), catalog().end(), [](const Problem& problem) {
    return problem.id.starts_with("soft");
  });
  EXPECT_EQ(offered({"blinding", "soft"}).size(), static_cast<std::size_t>(soft));
  EXPECT_TRUE(has(offered({"replay", "conv2d-"}), "conv2d-13-rounds"));
  EXPECT_TRUE(has(offered({"evaluate", "softmax/c"}, std::string(REKERNEL_SOURCE_DIR) + "/ops"),
                  "softmax/cluster_with_prefetch"))
      << "from within the project";
}

TEST_F(BashCompletion, LeavesFilesAndFoldersToTheShell) {
  EXPECT_EQ(offered({"evaluate", "generated/soft"}), Words{"generated/softmax"});
  EXPECT_TRUE(has(offered({"problem", "check", "READ"}), "README.md"));
  EXPECT_FALSE(has(offered({"evaluate", "READ"}), "README.md")) << "folders alone";
  EXPECT_TRUE(has(offered({"capture", "softmax", "--", "READ"}), "README.md"));
}

TEST_F(CompletionTest, ZshDescribesWhatItOffers) {
  if (!is_installed("zsh")) GTEST_SKIP() << "no zsh";
  const auto offered = [&](const std::string& words, int current) {
    return output("zsh -f",
                  "compdef() { print registered $1 $2 }\n"
                  "_describe() { print -l -- ${(P)4} }\n"
                  "_files() { print files $@ }\n"
                  "eval \"$(rekernel completion zsh)\"\n"
                  "words=(rekernel " +
                      words + ")\nCURRENT=" + std::to_string(current) + "\n_rekernel\n");
  };
  const std::string option = offered("bench --rec", 3);
  EXPECT_TRUE(option.starts_with("registered _rekernel rekernel\n--record:merge")) << option;
  EXPECT_EQ(offered("bench --pytorch o", 4), "registered _rekernel rekernel\non\noff\n");
  EXPECT_EQ(offered("evaluate softmax/cluster", 3),
            "registered _rekernel rekernel\nsoftmax/cluster_with_prefetch\nfiles -/\n");
}

TEST_F(CompletionTest, FishDescribesWhatItOffers) {
  if (!is_installed("fish")) GTEST_SKIP() << "no fish";
  const auto offered = [&](const std::string& line) {
    return sorted_lines(
        output("fish", "rekernel completion fish | source\ncomplete -C '" + line + "'\n"));
  };
  const Words options = offered("rekernel bench --rec");
  ASSERT_EQ(options.size(), 1u);
  EXPECT_TRUE(options[0].starts_with("--record\tmerge")) << options[0];
  EXPECT_EQ(offered("rekernel bench --pytorch o"), (Words{"off", "on"}));
  EXPECT_TRUE(has(offered("rekernel evaluate softmax/cluster"), "softmax/cluster_with_prefetch"));
  const Words folders = offered("rekernel evaluate gener");
  ASSERT_EQ(folders.size(), 1u);
  EXPECT_TRUE(folders[0].starts_with("generated/")) << folders[0];
}

TEST_F(CompletionTest, IsThereForTheseShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(testing::run_program(std::string("completion ") + shell, "/").exit_status, 0);
  }
  EXPECT_EQ(testing::run_program("completion", "/").exit_status, 2);
}

}  // namespace
}  // namespace rekernel
