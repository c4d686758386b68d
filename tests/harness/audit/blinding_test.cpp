#include "harness/audit/blinding.h"

#include <gtest/gtest.h>

#include <random>

#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

const std::vector<std::string> three_features = {"noise", "telling", "more noise"};

/// Runs of which the second feature alone differs by `shift` standard deviations.
std::vector<std::vector<double>> runs(int count, double shift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({normal(random), normal(random) + shift, normal(random)});
  }
  return all;
}

TEST(Separation, WhatDoesNotDifferIsGuessed) {
  int told = 0;
  double sum = 0;
  constexpr int tries = 20;
  for (int i = 0; i < tries; ++i) {
    const Separation found =
        separate("alike", runs(200, 0, 2 * i), runs(300, 0, 2 * i + 1), three_features);
    told += found.can_tell() ? 1 : 0;
    sum += found.balanced_accuracy;
    EXPECT_LT(found.high - found.low, 0.12);
  }
  EXPECT_LE(told, 3);  // 2.5% each
  EXPECT_NEAR(sum / tries, 0.5, 0.02);
}

TEST(Separation, WhatDiffersIsFoundAndNamed) {
  const Separation found = separate("shifted", runs(300, 0, 1), runs(100, 2, 2), three_features);
  EXPECT_TRUE(found.can_tell());
  EXPECT_GT(found.balanced_accuracy, 0.78);  // the best that can be is 0.84
  EXPECT_LT(found.balanced_accuracy, 0.88);
  EXPECT_EQ(found.telling, "telling");
  EXPECT_EQ(found.first, 300);
  EXPECT_EQ(found.second, 100);
}

TEST(Separation, ACombinationOfTwoIsFound) {
  std::mt19937_64 random(3);
  std::vector<std::vector<double>> same;
  std::vector<std::vector<double>> opposite;
  for (int i = 0; i < 600; ++i) {
    const double a = (random() % 2 == 0) ? 1 : -1;
    const double b = (random() % 2 == 0) ? 1 : -1;
    (a == b ? same : opposite).push_back({a, b, static_cast<double>(random() % 5)});
  }
  EXPECT_GT(separate("both", same, opposite, three_features).low, 0.6);
}

TEST(Separation, KindsOfRunsAreComparedInPairs) {
  std::mt19937_64 random(4);
  std::vector<Sighting> sightings;
  for (int i = 0; i < 300; ++i) {
    Sighting sighting;
    sighting.purpose = static_cast<Purpose>(i % 3);
    sighting.judged = random() % 2 == 0 || sighting.purpose != Purpose::timed;
    for (int word = 0; word < 64; ++word) {
      sighting.words.push_back(static_cast<std::uint32_t>(random()));
    }
    if (sighting.purpose == Purpose::stress) sighting.words[1] = 7;  // the gap
    sightings.push_back(sighting);
  }
  const std::vector<Separation> found = separations(sightings);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].question, "timed or repeat");
  EXPECT_EQ(found[1].question, "timed or stress");
  EXPECT_GT(found[1].low, 0.9);
  EXPECT_EQ(found[1].telling, "gap since the last run");
  EXPECT_EQ(found[2].first + found[2].second, 100);
}

TEST(NvrtcBlinding, TheObserverCompilesForEveryProblem) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  for (const Problem& problem : published_problems()) {
    const Candidate candidate = observing_candidate(problem);
    const Result<CompiledProgram> code =
        compiler->compile(candidate.program, problem_header(problem), "sm_80");
    ASSERT_TRUE(code) << problem.id << ": " << code.error().message;
    EXPECT_TRUE(check_launches(candidate.program, *code, "observer"));
  }
}

}  // namespace
}  // namespace rekernel
