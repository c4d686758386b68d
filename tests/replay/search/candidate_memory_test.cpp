#include "replay/search/candidate_memory.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

/// A memory that is told of candidates of the idea r1.i1.
struct Remembering {
  explicit Remembering(int survivors = 1) {
    header.settings.survivors = survivors;
    header.settings.bank = 0;
  }

  /// Takes so many nanoseconds; fails where it is 0.
  void add(const std::string& id, std::int64_t time_ns, bool gpus_differ = false) {
    auto candidate = testing::candidate_from_text(testing::kernel_reply(id),
                                                  {"softmax", "t", id, "i", "sm_90a"});
    ASSERT_TRUE(candidate) << candidate.error().message;
    WaveItem item;
    item.id = id;
    item.idea_id = "r1.i1";
    item.idea.title = "An idea";
    item.candidate = std::make_shared<const Candidate>(std::move(*candidate));
    boost::json::object event = testing::fake_record(
        id, *item.candidate, std::max<std::int64_t>(time_ns, 1), testing::FakeGpu{});
    event["sha256"] = candidate_sha256(*item.candidate);
    if (time_ns == 0) event["status"] = "wrong_result";
    const auto outcome = outcome_from_record(event, id);
    ASSERT_TRUE(outcome) << outcome.error().message;
    memory.add(1, item, *outcome, event, gpus_differ);
  }

  std::vector<std::string> shown(int round) {
    return ids_of(memory.prompt_parts(header.settings, round));
  }
  std::string history_in_a_prompt() {
    const PromptParts parts = memory.prompt_parts(header.settings, 2);
    return PromptWriter(header, parts).ideas(1).text();
  }

  Header header = testing::small_header();
  CandidateMemory memory{header};
};

TEST(CandidateMemory, ShowsTheFastestAndForgetsTheOthers) {
  Remembering told;
  told.add("r1.i1.b1", 3000);
  told.add("r1.i1.b2", 2000);
  told.add("r1.i1.b3", 0);
  EXPECT_EQ(told.memory.select(told.header.settings, 1).survivors,
            std::vector<std::string>{"r1.i1.b2"});
  EXPECT_EQ(told.shown(2), std::vector<std::string>{"r1.i1.b2"});
  const std::string prompt = told.history_in_a_prompt();
  for (const char* part :
       {"- r1.i1.b1 (An idea): passed: 3.0 us", "- r1.i1.b3 (An idea): wrong_result"}) {
    EXPECT_NE(prompt.find(part), std::string::npos) << part;
  }
  RoundPlan plan;
  plan.round = 2;
  plan.parents = {"r1.i1.b1"};
  const auto found = told.memory.find_parents(plan, "here");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "here: round_plans: round 2: parents: expected a seed, a survivor or a kernel of the "
            "bank, got \"r1.i1.b1\"");
}

TEST(CandidateMemory, KeepsWhatAPlanShowsUntilItsRound) {
  Remembering told;
  RoundPlan plan;
  plan.round = 3;
  plan.parents = {"r1.i1.b1", "r1.i1.b3"};
  told.header.settings.round_plans = {plan};
  told.memory.expect(told.header.settings.round_plans);
  told.add("r1.i1.b1", 3000);
  told.add("r1.i1.b2", 2000);
  told.add("r1.i1.b3", 0);
  told.memory.select(told.header.settings, 1);
  EXPECT_EQ(told.shown(2), std::vector<std::string>{"r1.i1.b2"});
  EXPECT_EQ(told.shown(3), *plan.parents) << "also one that failed";
  told.memory.select(told.header.settings, 3);
  EXPECT_TRUE(told.shown(3).empty()) << "its round is over";
}

TEST(CandidateMemory, BringsSeedsBack) {
  Remembering told;
  told.add("r1.i1.b1", 3000);
  told.memory.keep_as_seeds();
  told.add("r1.i1.b2", 2000);
  told.memory.select(told.header.settings, 1);
  EXPECT_EQ(told.shown(2), std::vector<std::string>{"r1.i1.b2"});
  RoundPlan plan;
  plan.round = 2;
  plan.parents = {"r1.i1.b1"};
  told.header.settings.round_plans = {plan};
  EXPECT_TRUE(told.shown(2).empty());
  ASSERT_TRUE(told.memory.find_parents(plan, "here"));
  EXPECT_EQ(told.shown(2), *plan.parents);
}

TEST(CandidateMemory, NamesTheGpuWhereTheyDiffer) {
  Remembering told;
  told.add("r1.i1.b1", 3000, true);
  EXPECT_NE(told.history_in_a_prompt().find(", on NVIDIA H200\n"), std::string::npos)
      << told.history_in_a_prompt();
}

}  // namespace
}  // namespace rekernel
