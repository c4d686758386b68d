#include "replay/report/walk.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::FakeModel;
using testing::small_header;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Everything passes, each as fast as the other.
class Passing : public Evaluator {
 public:
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Evaluation evaluation = testing::passing_evaluation(*requests[i].candidate, 500'000);
      if (!arrived(i, recorded_evaluation(evaluation, "GPU", ""))) break;
    }
    return std::nullopt;
  }
};

/// Two rounds of one idea with two kernels each, the last of which is prose.
class WalkOfASearch : public ::testing::Test {
 protected:
  void SetUp() override {
    Header header = small_header(2, 1, 2);
    header.settings.survivors = 1;
    header.settings.references.clear();
    FakeModel model;
    for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r2.i1.b1"}) {
      model.replies[id] = testing::kernel_reply(std::string("written as ") + id);
    }
    model.replies["r2.i1.b2"] = "prose";
    Passing evaluator;
    ASSERT_FALSE(run_on_file(folder / "t.jsonl", header, model, evaluator).interruption);
    Replay replay = replay_exactly(folder / "t.jsonl", KeepCandidates::yes);
    ASSERT_FALSE(replay.interruption) << replay.interruption->message;
    search = std::move(replay.search);
  }

  std::string shown(const WalkOptions& options) const {
    const Result<std::string> text = walk(search, options);
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text ? *text : "";
  }

  TemporaryFolder folder;
  ReplayedSearch search;
};

TEST_F(WalkOfASearch, GoesAsFarAsAnUnfinishedSearch) {
  const std::vector<std::string> lines = testing::lines_of(testing::read_text(folder / "t.jsonl"));
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    const auto path = folder / "cut.jsonl";
    testing::write_text(
        path, testing::joined({lines.begin(), lines.begin() + kept}) + lines[kept].substr(0, 5));
    Replay replay = replay_exactly(path, KeepCandidates::yes, Unfinished::accepted);
    ASSERT_FALSE(replay.interruption) << replay.interruption->message;
    const Result<std::string> text = walk(replay.search, {});
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(holds(*text, "The round is not over."),
              replay.search.candidates.size() > 2 * replay.search.rounds.size());
    EXPECT_TRUE(replay_exactly(path).interruption) << "an exact replay is of a whole file";
  }
}

TEST_F(WalkOfASearch, TellsOfLocalArraysAndWarnings) {
  EXPECT_FALSE(holds(shown({}), "a stack of"));
  EXPECT_FALSE(holds(shown({}), "the compiler warned"));
  Outcome& outcome = search.candidates.front().outcome;
  outcome.registers = 32;
  outcome.stack_bytes = 81920;
  outcome.compile_log = "ptxas info    : 0 bytes gmem\nkernel.cu(3): warning #177-D: unused\n  x\n";
  EXPECT_TRUE(holds(shown({}), "no spills, a stack of 81920 bytes a thread\n")) << shown({});
  EXPECT_TRUE(holds(shown({}), "the compiler warned: kernel.cu(3): warning #177-D: unused\n"))
      << shown({});
}

TEST_F(WalkOfASearch, ShowsEveryCandidateWithItsDifferenceToItsFirstParent) {
  const std::string text = shown({});
  for (const ReplayedCandidate& one : search.candidates) {
    EXPECT_TRUE(holds(text, "\n" + one.id + ": " + one.idea.title)) << one.id;
  }
  // The first round starts from nothing and is whole; the second builds on what survived.
  EXPECT_TRUE(holds(text, "started from: no kernel, only the problem"));
  EXPECT_TRUE(holds(text, "r1.i1.b1/kernel.cu, whole:"));
  const std::string parent = search.candidates[2].parents.at(0);
  EXPECT_TRUE(holds(text, "\n--- " + parent + "/kernel.cu\n+++ r2.i1.b1/kernel.cu\n@@ "));
  EXPECT_TRUE(holds(text, "\n-// written as " + parent + "\n+// written as r2.i1.b1\n"));
  // The plans differ only in what names the candidate.
  EXPECT_TRUE(holds(text, "kernel.json: as in " + parent + "."));
  EXPECT_TRUE(holds(text, "The reply held no candidate."));
  EXPECT_TRUE(holds(text, "Survivors: " + search.rounds.back().selection.survivors.at(0) + "."));
}

TEST_F(WalkOfASearch, ShowsAPlanThatChanged) {
  search.candidates[2].candidate->program.compile.max_registers = 77;
  const std::string text = shown({.round = 2});
  EXPECT_TRUE(holds(text, "+++ r2.i1.b1/kernel.json\n")) << text;
  EXPECT_TRUE(holds(text, "77"));
  EXPECT_FALSE(holds(text, "r2_i1_b1")) << "the name is no difference";
}

TEST_F(WalkOfASearch, ShowsOneRoundOnRequest) {
  const std::string text = shown({.round = 2});
  EXPECT_FALSE(holds(text, "Round 1"));
  EXPECT_TRUE(holds(text, "Round 2\n=======\n"));
  const Result<std::string> none = walk(search, {.round = 3});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "fake: no round 3; it has 1 to 2");
}

TEST_F(WalkOfASearch, ShowsWholeCodeOnRequest) {
  const std::string text = shown({.round = 2, .whole_code = true});
  EXPECT_TRUE(holds(text, search.candidates[2].candidate->program.source));
  EXPECT_TRUE(holds(text, candidate_json(*search.candidates[2].candidate)));
  EXPECT_FALSE(holds(text, "+++ "));
}

TEST_F(WalkOfASearch, FencesCodeInMarkdown) {
  search.candidates[2].candidate->program.source += "// ````\n";
  const std::string text = shown({.round = 2, .markdown = true});
  EXPECT_TRUE(holds(text, "## Round 2\n"));
  EXPECT_TRUE(holds(text, "### r2.i1.b1: "));
  EXPECT_TRUE(holds(text, "\n`````diff\n--- ")) << text;
}

TEST_F(WalkOfASearch, KeepsControlCharactersOffTheTerminal) {
  search.candidates[2].candidate->program.source +=
      "// \x1b[2J \xC2\x9B"
      "2J \xC3\x9Bx\n";
  search.candidates[2].idea.text = "clear \x1b[2J";
  const std::string text = shown({.round = 2});
  EXPECT_FALSE(holds(text, "\x1b"));
  EXPECT_FALSE(holds(text, "\xC2\x9B"));
  EXPECT_TRUE(holds(text, "// ?[2J ?2J \xC3\x9Bx"));
}

TEST_F(WalkOfASearch, TellsWhatALaterMeasurementSaid) {
  Remeasurement today;
  for (const ReplayedCandidate& one : search.candidates) today.today.push_back(one.outcome);
  today.devices.assign(search.candidates.size(), "another GPU");
  today.today[2]->status = Status::passed;
  today.today[2]->median_ns = 2'000'000;
  const Result<std::string> text = walk(search, {.round = 2}, &today);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_TRUE(holds(*text, "measured again: 2.000 ms")) << *text;
  EXPECT_TRUE(holds(*text, ", on another GPU\n"));
}

TEST(WalkOfTheCommittedRun, ShowsEachRoundsDifferenceBesideThePublishedTime) {
  const Replay replay =
      replay_exactly(trajectory_path(REKERNEL_SOURCE_DIR, "conv2d-13-rounds"), KeepCandidates::yes);
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  const Result<std::string> fifth = walk(replay.search, {.round = 5});
  ASSERT_TRUE(fifth.ok()) << fifth.error().message;
  EXPECT_TRUE(holds(*fifth, "\n--- r4.i1.b1/kernel.cu\n+++ r5.i1.b1/kernel.cu\n"));
  EXPECT_TRUE(holds(*fifth, "\npublished: 1.910 ms, "));
  EXPECT_TRUE(holds(*fifth, "started from: r4.i1.b1\n"));
  EXPECT_FALSE(holds(*fifth, "/tmp"));
  // The fourth had a kernel of the library before it, and none of the search.
  const Result<std::string> fourth = walk(replay.search, {.round = 4});
  ASSERT_TRUE(fourth.ok()) << fourth.error().message;
  EXPECT_TRUE(holds(*fourth, "started from: the library's kernel gemm ("));
  EXPECT_TRUE(holds(*fourth, "r4.i1.b1/kernel.cu, whole:"));
  const Result<std::string> all = walk(replay.search, {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  for (const ReplayedCandidate& one : replay.search.candidates) {
    EXPECT_TRUE(holds(*all, "\n" + one.id + ": ")) << one.id;
  }
}

}  // namespace
}  // namespace rekernel
