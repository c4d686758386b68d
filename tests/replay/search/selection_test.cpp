#include "replay/search/selection.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using Ids = std::vector<std::string>;

Ranked ranked(int round, int idea, int branch, std::int64_t time, const std::string& hash) {
  const std::string idea_id = "r" + std::to_string(round) + ".i" + std::to_string(idea);
  return {idea_id + ".b" + std::to_string(branch), idea_id, round, time, hash};
}

const std::vector<Ranked> history = {
    ranked(1, 1, 1, 50, "a"), ranked(1, 1, 2, 60, "b"), ranked(1, 2, 1, 70, "c"),
    ranked(2, 1, 1, 55, "d"), ranked(2, 2, 1, 80, "e"),
};

TEST(SelectSeeds, TakesTheFastestOfTheRoundAndOfEarlierSurvivors) {
  Settings settings;
  const Selection selection = select_seeds(settings, history, 2, {"r1.i1.b1", "r1.i1.b2"});
  EXPECT_EQ(selection.survivors, (Ids{"r1.i1.b1", "r2.i1.b1"}));
  EXPECT_EQ(selection.bank, (Ids{"r1.i1.b2", "r1.i2.b1"}));
}

TEST(SelectSeeds, ChainsFromTheLastRoundEvenWhereItIsSlower) {
  Settings settings;
  settings.chain = true;
  settings.survivors = 1;
  EXPECT_EQ(select_seeds(settings, history, 2, {"r1.i1.b1"}).survivors, Ids{"r2.i1.b1"});
  EXPECT_EQ(select_seeds(settings, history, 3, {"r2.i1.b1"}).survivors, Ids{"r2.i1.b1"});
}

TEST(SelectSeeds, TakesOneKernelAnIdeaIntoTheBank) {
  Settings settings;
  settings.survivors = 1;
  settings.bank = 3;
  EXPECT_EQ(select_seeds(settings, history, 2, {}).survivors, Ids{"r2.i1.b1"});
  EXPECT_EQ(select_seeds(settings, history, 2, {}).bank, (Ids{"r1.i1.b1", "r1.i2.b1", "r2.i2.b1"}));
}

TEST(SelectSeeds, CountsEqualKernelsOnceAndBreaksTiesByDiscovery) {
  Settings settings;
  settings.bank = 1;
  const std::vector<Ranked> twins = {ranked(1, 1, 1, 50, "a"), ranked(1, 2, 1, 50, "a"),
                                     ranked(1, 3, 1, 50, "b"), ranked(1, 4, 1, 50, "c")};
  const Selection selection = select_seeds(settings, twins, 1, {});
  EXPECT_EQ(selection.survivors, (Ids{"r1.i1.b1", "r1.i3.b1"}));
  EXPECT_EQ(selection.bank, Ids{"r1.i4.b1"});
}

TEST(SelectSeeds, IsEmptyWithoutCorrectKernels) {
  EXPECT_TRUE(select_seeds(Settings{}, {}, 1, {}).survivors.empty());
  EXPECT_TRUE(select_seeds(Settings{}, {}, 1, {}).bank.empty());
}

}  // namespace
}  // namespace rekernel
