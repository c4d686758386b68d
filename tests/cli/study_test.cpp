// `rekernel study` and `rekernel profile` as their users meet them, without a GPU and without ncu.

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/gpu/choice.h"
#include "program.h"
#include "replay/search/study.h"
#include "tests/replay/fakes.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using testing::ProgramOutcome;
using testing::read_text;
using testing::write_text;

class StudyCommand : public ::testing::Test {
 protected:
  StudyCommand() {
    for (const char* name : {"generated", "results"}) fs::create_directories(folder_ / name);
    write_text(folder_ / "study.json", R"({"schema": 1, "name": "two",
      "problems": ["softmax", "gelu"], "profiled": [")" +
                                           drawn({"softmax", "gelu"}, 1).front() +
                                           R"("],
      "search": {"slow_seed": true, "settings": {"rounds": 1, "ideas": 1, "branches": 1,
                 "references": ["headline"], "models": [{"name": "one"}]}}})");
  }
  ProgramOutcome run(const std::string& arguments) const {
    return testing::run_program(arguments, folder_.path().string(),
                                "XDG_CONFIG_HOME=" + (folder_ / "config").string());
  }
  void expect(const ProgramOutcome& outcome, int status, const std::string& part) const {
    EXPECT_EQ(outcome.exit_status, status) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  }

  TemporaryFolder folder_;
};

TEST_F(StudyCommand, GoesOnWithEverySearchAndSaysWhereTheyStand) {
  if (visible_gpus()) GTEST_SKIP() << "skipped: with a GPU, the seeds are evaluated";
  expect(run("study study.json --status"), 0, "not begun");
  const ProgramOutcome first = run("study study.json");
  expect(first, 3, "two-softmax");
  for (const char* name : {"two-softmax", "two-gelu"}) {
    const std::string text = read_text(folder_ / "trajectories" / (std::string(name) + ".jsonl"));
    EXPECT_NE(text.find("\"name\":\"" + std::string(name) + "\""), std::string::npos);
    EXPECT_NE(text.find("The definition and nothing that makes it fast"), std::string::npos);
  }
  // The headline is a library's where there is one, else PyTorch's.
  EXPECT_NE(read_text(folder_ / "trajectories/two-softmax.jsonl").find("[\"cudnn_softmax\"]"),
            std::string::npos);
  EXPECT_NE(read_text(folder_ / "trajectories/two-gelu.jsonl").find("[\"pytorch_eager\"]"),
            std::string::npos);
  const std::string before = read_text(folder_ / "trajectories/two-gelu.jsonl");
  expect(run("study study.json"), 3, "waits for the evaluation of 1 candidate");
  EXPECT_EQ(read_text(folder_ / "trajectories/two-gelu.jsonl"), before);
  expect(run("study study.json --status --json"), 0, "\"profiled\": true");
}

TEST_F(StudyCommand, NamesWhatIsWrong) {
  expect(run("study none.json"), 2, "none.json: cannot be opened");
  expect(run("search two-relu --study study.json"), 2,
         "study.json: no search two-relu (did you mean 'two-gelu'?)");
  expect(run("search two-gelu --study study.json --problem gelu"), 2,
         "--problem: expected it or --study, not both");
  expect(run("search two-gelu --study study.json --launcher command --prefix true"), 2,
         "pytorch_eager is timed beside candidates, which jobs cannot do");
  EXPECT_FALSE(fs::exists(folder_ / "trajectories/two-gelu.jsonl"));
}

TEST_F(StudyCommand, KeepsASearchThatCannotGoOnFromStoppingTheOthers) {
  if (visible_gpus()) GTEST_SKIP() << "skipped: with a GPU, the seeds are evaluated";
  fs::create_directories(folder_ / "trajectories");
  write_text(folder_ / "trajectories/two-softmax.jsonl", "{\"event\":\"other\"}\n");
  expect(run("study study.json"), 2, "two-softmax: ");
  EXPECT_TRUE(fs::exists(folder_ / "trajectories/two-gelu.jsonl"));
}

TEST_F(StudyCommand, ProfilesOnlyWithNsightCompute) {
  expect(run("new softmax slow"), 0, "made");
  expect(run("profile softmax/slow --ncu /bin/true"), 2, "/bin/true --version: expected");
  expect(run("profile softmax/none"), 2, "softmax/none");
  if (!visible_gpus()) expect(run("profile softmax/slow"), 2, "");
}

}  // namespace
}  // namespace rekernel
