// Help, versions and manual pages as a user meets them.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

using testing::ProgramOutcome;

const fs::path root = REKERNEL_SOURCE_DIR;

ProgramOutcome help_program(const std::string& arguments, const std::string& variables = "") {
  return testing::run_program(arguments, REKERNEL_SOURCE_DIR, variables);
}

/// What `rekernel help --json` says of each command.
json::array all_pages() {
  const ProgramOutcome outcome = help_program("help --json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  const Result<json::value> pages = parse_json(outcome.output, "help");
  return pages ? pages->at("commands").as_array() : json::array{};
}

std::string text_of(const json::value& object, const char* name) {
  return std::string(object.at(name).as_string());
}

bool is_installed(const std::string& program) {
  return testing::run_shell("command -v " + program, "/").exit_status == 0;
}

TEST(Help, EveryCommandTellsUsageArgumentsExampleAndStatuses) {
  const json::array pages = all_pages();
  ASSERT_GT(pages.size(), 15u);
  const std::string overview = help_program("--help").output;
  for (const json::value& page : pages) {
    const std::string name = text_of(page, "name");
    const ProgramOutcome help = help_program(name + " --help");
    EXPECT_EQ(help.exit_status, 0) << name;
    EXPECT_TRUE(help.output.starts_with("Usage: rekernel " + name + " ")) << help.output;
    EXPECT_NE(help.output.find("\nExit status:\n  0  good\n"), std::string::npos) << help.output;
    EXPECT_EQ(help_program(name + " -h").output, help.output);
    EXPECT_EQ(help_program("help " + name).output, help.output);
    EXPECT_FALSE(page.at("examples").as_array().empty()) << name;
    EXPECT_FALSE(text_of(page, "description").empty()) << name;
    for (const json::value& group : page.at("groups").as_array()) {
      EXPECT_NE(text_of(group, "title"), "Options") << name << ": its options belong to something";
    }
    EXPECT_NE(overview.find("\n  " + name + " "), std::string::npos) << name;
    for (const json::value& argument : page.at("arguments").as_array()) {
      EXPECT_NE(help.output.find("\n  " + text_of(argument, "usage") + " "), std::string::npos)
          << help.output;
    }
  }
}

TEST(Help, PositionalArgumentsAreNoOptions) {
  const std::string help = help_program("bench --help").output;
  EXPECT_TRUE(help.starts_with("Usage: rekernel bench [PROBLEM|KERNEL…] [options]\n")) << help;
  EXPECT_EQ(help.find("--name"), std::string::npos) << help;
  EXPECT_NE(help.find("\nArguments:\n  [PROBLEM|KERNEL…]  "), std::string::npos) << help;
}

TEST(Help, OptionsStandInGroups) {
  const std::string help = help_program("search --help").output;
  for (const char* title :
       {"Going on", "Problem and goal", "Rounds and choice", "Replies",
        "Models and endpoints (--replies openai)", "Evaluation and launchers", "Output", "Help"}) {
    EXPECT_NE(help.find(std::string("\n") + title + ":\n"), std::string::npos) << title;
  }
}

TEST(Help, FitsTheColumnsThatThereAre) {
  for (const std::string columns : {"50", "80", ""}) {
    const std::string variables = columns.empty() ? "env -u COLUMNS" : "COLUMNS=" + columns;
    const std::size_t most = columns.empty() ? 100 : std::stoul(columns);
    for (const char* command : {"--help", "search --help", "replay --help", "problem --help"}) {
      std::istringstream lines(help_program(command, variables).output);
      for (std::string line; std::getline(lines, line);) {
        // Examples, terms and names of files are not broken.
        const bool stays_whole = line.starts_with("  rekernel ") || line.starts_with("  --") ||
                                 line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
        if (!stays_whole) {
          EXPECT_LE(columns_of(line), most) << line;
        }
      }
    }
  }
  EXPECT_NE(help_program("search --help", "COLUMNS=50").output,
            help_program("search --help", "COLUMNS=80").output);
}

/// That a word names something, where its argument says what is known of it.
void expect_exists(const std::string& word, const json::value& argument, const std::string& line) {
  const json::value* const names = argument.as_object().if_contains("names");
  if (!names) return;
  bool exists = false;
  for (const json::value& one : names->as_array()) {
    const std::string kind(one.as_string());
    exists |= kind == "command" || kind == "anything";
    exists |= kind == "problem" && find_problem(word);
    exists |= kind == "kernel" && fs::exists(root / "generated" / word / "kernel.json");
    exists |= kind == "folder" && fs::is_directory(root / word);
    exists |= kind == "file" && fs::is_regular_file(root / word);
    exists |= kind == "search" && (fs::exists(root / "trajectories" / (word + ".jsonl")) ||
                                   line.starts_with("rekernel search "));
  }
  EXPECT_TRUE(exists) << "'" << word << "' in: " << line;
}

/// The words that are neither options nor values of options.
std::vector<std::string> positional_words(const json::value& page, const std::string& line) {
  std::set<std::string> with_values;
  for (const json::value& group : page.at("groups").as_array()) {
    for (const json::value& option : group.at("options").as_array()) {
      if (!text_of(option, "value").empty()) with_values.insert("--" + text_of(option, "name"));
    }
  }
  std::vector<std::string> found;
  std::istringstream words(line.substr(("rekernel " + text_of(page, "name")).size()));
  for (std::string word; words >> word;) {
    if (with_values.contains(word)) {
      words >> word;
    } else if (!word.starts_with("-")) {
      found.push_back(word);
    }
  }
  return found;
}

TEST(Help, ExamplesParseAndNameWhatThereIs) {
  for (const json::value& page : all_pages()) {
    const std::string name = text_of(page, "name");
    const json::array& arguments = page.at("arguments").as_array();
    for (const json::value& example : page.at("examples").as_array()) {
      const std::string line = text_of(example, "line");
      const std::string start = "rekernel " + name;
      ASSERT_TRUE(line.starts_with(start)) << line;
      const ProgramOutcome parsed = help_program(name + " --help" + line.substr(start.size()));
      EXPECT_EQ(parsed.exit_status, 0) << line << "\n" << parsed.output;
      EXPECT_TRUE(parsed.output.starts_with("Usage: ")) << line << "\n" << parsed.output;
      const std::vector<std::string> words = positional_words(page, line);
      for (std::size_t i = 0; i < words.size() && !arguments.empty(); ++i) {
        expect_exists(words[i], arguments[std::min(i, arguments.size() - 1)], line);
      }
    }
  }
}

/// Also in what is marked as no argument.
TEST(Help, ExamplesNameNoKernelThatDoesNotExist) {
  const std::string generated = "generated/";
  for (const json::value& page : all_pages()) {
    for (const json::value& example : page.at("examples").as_array()) {
      const std::string line = text_of(example, "line");
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (word.starts_with(generated)) word.erase(0, generated.size());
        if (!find_problem(word.substr(0, word.find('/')))) continue;
        EXPECT_TRUE(fs::exists(root / generated / word)) << line;
      }
    }
  }
}

TEST(Help, ListsTheCommandsOfAWord) {
  const ProgramOutcome outcome = help_program("problem --help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("\n  problem verify "), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("\n  bench "), std::string::npos) << outcome.output;
  EXPECT_EQ(help_program("help problem").output, outcome.output);
  EXPECT_EQ(help_program("problem").exit_status, 2);
  EXPECT_EQ(help_program("").exit_status, 2);
}

TEST(Version, IsTextOrJson) {
  const std::string judge = harness_digests().judge;
  const ProgramOutcome text = help_program("--version");
  EXPECT_EQ(text.exit_status, 0);
  EXPECT_TRUE(text.output.starts_with(std::string("rekernel ") + REKERNEL_VERSION + "\njudge " +
                                      judge + "\n"))
      << text.output;
  const ProgramOutcome outcome = help_program("--version --json");
  const Result<json::value> value = parse_json(outcome.output, "version");
  ASSERT_TRUE(value.ok()) << outcome.output;
  EXPECT_EQ(text_of(*value, "version"), REKERNEL_VERSION);
  EXPECT_EQ(text_of(*value, "judge"), judge);
  for (const char* name : {"compiler", "cuda_headers", "boost", "nvrtc", "recorder"}) {
    EXPECT_TRUE(value->as_object().contains(name)) << name;
  }
  EXPECT_EQ(help_program("--version now").exit_status, 2);
}

TEST(ManualPages, AreOneForEachCommandAndAnOverview) {
  const TemporaryFolder folder;
  const ProgramOutcome outcome = help_program("help --man " + (folder / "man1").string());
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_TRUE(fs::exists(folder / "man1/rekernel.1"));
  for (const json::value& page : all_pages()) {
    std::string name = text_of(page, "name");
    std::replace(name.begin(), name.end(), ' ', '-');
    EXPECT_TRUE(fs::exists(folder / "man1" / ("rekernel-" + name + ".1"))) << name;
  }
  EXPECT_EQ(help_program("help --man /dev/null/man").exit_status, 2);
}

TEST(ManualPages, AreGoodRoff) {
  const bool man = is_installed("man"), mandoc = is_installed("mandoc");
  if (!man && !mandoc) GTEST_SKIP() << "neither man nor mandoc";
  const TemporaryFolder folder;
  ASSERT_EQ(help_program("help --man " + folder.path().string()).exit_status, 0);
  const std::string pages = folder.path().string() + "/*.1";
  if (man) {
    const ProgramOutcome shown = testing::run_shell(
        "for page in " + pages +
            "; do LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l $page 2>&1 >/dev/null; done",
        "/");
    EXPECT_EQ(shown.output, "");
  }
  if (mandoc) {
    EXPECT_EQ(testing::run_shell("mandoc -T lint -W warning " + pages, "/").output, "");
  }
}

TEST(Installing, PutsPagesAndCompletionsWhereTheyAreLookedFor) {
  const TemporaryFolder folder;
  const ProgramOutcome outcome = testing::run_shell(
      "DESTDIR=" + folder.path().string() +
          " \"" REKERNEL_CMAKE "\" --install \"" REKERNEL_BUILD_DIR "\" --prefix /usr",
      "/");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  for (const char* file :
       {"bin/rekernel", "share/man/man1/rekernel.1", "share/man/man1/rekernel-search.1",
        "share/bash-completion/completions/rekernel", "share/zsh/site-functions/_rekernel",
        "share/fish/vendor_completions.d/rekernel.fish"}) {
    EXPECT_TRUE(fs::is_regular_file(folder / "usr" / file)) << file;
  }
}

/// On a terminal of script(1).
std::string on_a_terminal(const std::string& arguments, const std::string& variables) {
  return testing::run_shell(variables + " script -qec '\"" REKERNEL_PROGRAM "\" " + arguments +
                                "' /dev/null </dev/null",
                            REKERNEL_SOURCE_DIR)
      .output;
}

TEST(Pager, IsForTerminalsAndForWalksAndHelpAlone) {
  if (!is_installed("script")) GTEST_SKIP() << "no script(1)";
  const std::string pager = "PAGER='sed s/^/paged:/'";
  EXPECT_TRUE(on_a_terminal("help bench", pager).starts_with("paged:Usage: rekernel bench"));
  EXPECT_NE(on_a_terminal("replay conv2d-13-rounds --walk", pager).find("paged:conv2d-13-rounds"),
            std::string::npos);
  EXPECT_TRUE(on_a_terminal("bench --help", pager).starts_with("Usage: rekernel bench"));
  EXPECT_TRUE(help_program("help bench", pager).output.starts_with("Usage: rekernel bench"));
  EXPECT_NE(on_a_terminal("help bench", "PAGER=no_such_pager").find("Usage: rekernel bench"),
            std::string::npos);
  EXPECT_EQ(on_a_terminal("help search", "PAGER=true").find("Usage"), std::string::npos)
      << "a pager that leaves at once has shown it";
}

TEST(Walk, ShowsTheCandidatesThatAreAskedFor) {
  const std::string replay = "replay conv2d-13-rounds --candidate ";
  const ProgramOutcome one = help_program(replay + "r4.i1.b1");
  ASSERT_EQ(one.exit_status, 0) << one.output;
  EXPECT_NE(one.output.find("\nr4.i1.b1: "), std::string::npos) << one.output;
  EXPECT_EQ(one.output.find("\nr5.i1.b1: "), std::string::npos);
  EXPECT_EQ(one.output.find("Survivors:"), std::string::npos);
  const ProgramOutcome two = help_program(replay + "r5.i1.b1 --candidate r2.i1.b1");
  const std::size_t fifth = two.output.find("\nr5.i1.b1: ");
  ASSERT_NE(fifth, std::string::npos) << two.output;
  EXPECT_NE(two.output.find("\nr2.i1.b1: ", fifth), std::string::npos) << two.output;
  const ProgramOutcome none = help_program(replay + "r14.i1.b1");
  EXPECT_EQ(none.exit_status, 2);
  EXPECT_TRUE(none.output.starts_with(
      "rekernel: conv2d-13-rounds: no candidate 'r14.i1.b1' (did you mean '"))
      << none.output;
  EXPECT_EQ(help_program(replay + "r4.i1.b1 --round 4").exit_status, 2);
  EXPECT_EQ(help_program(replay + "r4.i1.b1 --json").exit_status, 2);
}

}  // namespace
}  // namespace rekernel
