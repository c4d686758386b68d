// `--problem FILE`: commands on a problem that is in no project, as far as they need no GPU.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/problems/catalog.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using testing::ProgramOutcome;

constexpr const char* text = R"({
  "schema": 1, "id": "twice_x", "title": "twice x, FP32",
  "axes": {"rows": 512, "columns": 256}, "other_sizes": {"rows": [1, 40], "columns": [1, 40]},
  "inputs": {"x": {"dtype": "f32", "shape": ["rows", "columns"], "draw": {"normal": [0, 1]}}},
  "outputs": {"y": {"dtype": "f32", "shape": ["rows", "columns"]}},
  "definition": ["y[i, j] = 2 * x[i, j]"], "pytorch": "2 * x", "tolerance": "fp32"
})";

class OwnProblem : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_.path() / "mine.json") << text; }

  ProgramOutcome run(const std::string& arguments) const {
    return testing::run_program(arguments, folder_.path().string());
  }

  TemporaryFolder folder_;
};

TEST_F(OwnProblem, HasACandidateThatIsKnownWithItsFileAlone) {
  const ProgramOutcome made = run("new --problem mine.json first --into .");
  ASSERT_EQ(made.exit_status, 0) << made.output;
  ASSERT_TRUE(fs::exists(folder_.path() / "first" / "kernel.json"));
  const ProgramOutcome unknown = run("show ./first");
  EXPECT_EQ(unknown.exit_status, 2);
  EXPECT_NE(unknown.output.find("unknown problem 'twice_x'"), std::string::npos) << unknown.output;
  const ProgramOutcome shown = run("show ./first --problem mine.json");
  EXPECT_EQ(shown.exit_status, 0) << shown.output;
  EXPECT_NE(shown.output.find("make_y"), std::string::npos) << shown.output;
}

TEST_F(OwnProblem, IsShownAndListed) {
  const ProgramOutcome page = run("show --problem mine.json");
  EXPECT_EQ(page.exit_status, 0) << page.output;
  EXPECT_NE(page.output.find("y[i, j] = 2 * x[i, j]"), std::string::npos) << page.output;
  const ProgramOutcome listed = run("list --problem ./mine.json");
  EXPECT_EQ(listed.exit_status, 0) << listed.output;
  EXPECT_NE(listed.output.find("elsewhere"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("twice_x"), std::string::npos) << listed.output;
}

TEST_F(OwnProblem, IsNeverRecordedInAProject) {
  ASSERT_EQ(run("new --problem mine.json first --into .").exit_status, 0);
  fs::create_directories(folder_.path() / "generated");
  fs::create_directories(folder_.path() / "results");
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const ProgramOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(why), std::string::npos) << outcome.output;
  };
  refused("bench ./first --problem mine.json --record", "--record: results/ keeps the results of");
  refused("bench --problem mine.json", "expected the kernels' folders");
  refused("search mine --problem ./mine.json", "expected NAME to be a file's path");
  refused("new --problem mine.json second", "expected --into FOLDER");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "results"));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "generated"));
}

TEST_F(OwnProblem, HasASearchThatGoesOnWithItsFile) {
  const std::string search = "search ./mine.jsonl --problem ./mine.json --target h200";
  EXPECT_EQ(run(search).exit_status, 3);
  ASSERT_TRUE(fs::exists(folder_.path() / "mine.jsonl"));
  EXPECT_EQ(run("search ./mine.jsonl --resume --status").exit_status, 2);
  const ProgramOutcome status = run("search ./mine.jsonl --resume --status --problem ./mine.json");
  EXPECT_EQ(status.exit_status, 0) << status.output;
  EXPECT_NE(status.output.find("twice_x"), std::string::npos) << status.output;
}

TEST_F(OwnProblem, ThatIsNoneIsOneLine) {
  std::ofstream(folder_.path() / "half.json") << "{\"schema\": 1";
  for (const char* file : {"none.json", "half.json", "."}) {
    const ProgramOutcome outcome = run(std::string("show softmax --problem ") + file);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
    EXPECT_EQ(outcome.output.find("rekernel: --problem "), 0u) << outcome.output;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

/// The catalogue is that of the project around the working directory.
TEST_F(OwnProblem, OfTheProjectAroundIsInTheCatalog) {
  for (const char* part : {"generated", "results", "ops/problems/mine"}) {
    fs::create_directories(folder_.path() / part);
  }
  fs::copy_file(folder_.path() / "mine.json", folder_.path() / "ops/problems/mine/twice_x.json");
  const ProgramOutcome listed = run("list");
  EXPECT_EQ(listed.exit_status, 0) << listed.output;
  EXPECT_NE(listed.output.find("twice_x"), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find("softmax"), std::string::npos) << listed.output;
  // A folder of results and kernels alone has the problems of the program.
  fs::remove_all(folder_.path() / "ops");
  EXPECT_NE(run("list").output.find("softmax"), std::string::npos);
}

}  // namespace
}  // namespace rekernel
