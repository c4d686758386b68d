#include "replay/search/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

// However a search goes on, what was forgotten would not have been chosen.
TEST(ForgetBeaten, ChangesNoSelection) {
  std::mt19937 random(7);
  const auto any_of = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  for (int search = 0; search < 200; ++search) {
    Settings settings;
    settings.survivors = 1 + any_of(3);
    settings.bank = any_of(4);
    settings.chain = search % 4 == 0;
    const int hashes = 1 + any_of(40);
    std::vector<Ranked> all, kept;
    Selection last;
    for (int round = 1; round <= 30; ++round) {
      const int candidates = any_of(8);
      for (int i = 0; i < candidates; ++i) {
        all.push_back(ranked(round, 1 + any_of(3), i, any_of(25), std::to_string(any_of(hashes))));
        kept.push_back(all.back());
      }
      const Selection whole = select_seeds(settings, all, round, last.survivors);
      const Selection rest = select_seeds(settings, kept, round, last.survivors);
      ASSERT_EQ(rest.survivors, whole.survivors) << "search " << search << ", round " << round;
      ASSERT_EQ(rest.bank, whole.bank) << "search " << search << ", round " << round;
      last = whole;
      forget_beaten(settings, last.survivors, kept);
    }
  }
}

TEST(ForgetBeaten, KeepsAFewHoweverManyThereWere) {
  const Settings settings;
  std::vector<Ranked> correct;
  std::size_t most = 0;
  for (int round = 1; round <= 2000; ++round) {
    const std::string number = std::to_string(round);
    correct.push_back(ranked(round, 1, 1, 5000 - round, number));  // each one is faster
    correct.push_back(ranked(round, 1, 2, 6000, number + "b"));    // so is none of these
    correct.push_back(ranked(1, 7, round, 5000 - round, "same idea " + number));
    correct.push_back(ranked(round, 2, 1, 5000 - round, "same source"));
    forget_beaten(settings, select_seeds(settings, correct, round, {}).survivors, correct);
    most = std::max(most, correct.size());
  }
  EXPECT_LE(most, 30U);
}

}  // namespace
}  // namespace rekernel
