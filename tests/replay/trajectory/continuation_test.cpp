#include "replay/trajectory/continuation.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::write_text;

TEST(Continuation, IsReadFromAFileAndNamesWhatIsWrong) {
  TemporaryFolder folder;
  const std::string path = folder / "more.json";
  const Settings settings;
  write_text(path, R"({"rounds": 7, "round_plans": [{"round": 6, "ideas": ["An idea."]}]})");
  const auto read = load_continuation(path, settings);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FALSE(adds_nothing(*read, settings));
  const auto longer = continued(settings, *read, "here");
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->last_round(), 7);
  ASSERT_NE(longer->plan_of(6), nullptr);
  EXPECT_TRUE(adds_nothing(*read, *longer));
  EXPECT_EQ(continued(*longer, *read, "here").error().message,
            "here: round_plans: round 6 has a plan already");
  for (const char* bad : {"[]", "{}", R"({"rounds": 4})", R"({"rounds": 7, "round": 1})",
                          R"({"rounds": 7, "round_plans": [{"round": 8}]})"}) {
    write_text(path, bad);
    const auto refused = load_continuation(path, settings);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_TRUE(refused.error().message.starts_with(path)) << refused.error().message;
  }
}

TEST(Continuation, IsReadAsItWasWritten) {
  Continuation continuation{7, 1000, {}, "a person wanted more"};
  RoundPlan plan;
  plan.round = 6;
  plan.parents = {"seed.1"};
  continuation.round_plans = {plan};
  const auto read = continuation_from_json(to_json(continuation), {}, "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)), boost::json::serialize(to_json(continuation)));
}

TEST(Continuation, AddsNothingWhereAllOfItIsSo) {
  Settings settings;
  Continuation continuation{settings.rounds, settings.token_budget, {}, "notes do not count"};
  EXPECT_TRUE(adds_nothing(continuation, settings));
  continuation.token_budget = 5;
  EXPECT_FALSE(adds_nothing(continuation, settings));
  settings.token_budget = 5;
  EXPECT_TRUE(adds_nothing(continuation, settings));
  RoundPlan plan;
  plan.round = 2;
  continuation.round_plans = {plan};
  EXPECT_FALSE(adds_nothing(continuation, settings));
  settings.round_plans = {plan};
  EXPECT_TRUE(adds_nothing(continuation, settings));
  settings.round_plans[0].ideas = {"another idea"};
  EXPECT_FALSE(adds_nothing(continuation, settings));
}

}  // namespace
}  // namespace rekernel
