#include "harness/dataset/comparisons.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

/// One that passed with this share of the reference's time and its interval.
KeptCandidate passed(const std::string& id, Percent percent, const std::string& device = "H") {
  KeptCandidate one;
  one.id = id;
  one.outcome.status = Status::passed;
  one.outcome.median_ns = static_cast<std::int64_t>(1e8 / percent.value);
  one.outcome.reference = "library";
  one.record["device"] = device;
  ReferenceResult reference;
  reference.id = "library";
  reference.percent_of_reference = percent;
  one.evaluation.references.push_back(reference);
  return one;
}

KeptCandidate failed(const std::string& id) {
  KeptCandidate one;
  one.id = id;
  one.outcome.status = Status::wrong_result;
  return one;
}

TEST(Advantage, IsTheJudgesVerdictOrATimeBeyondNoise) {
  const KeptCandidate fast = passed("fast", {200, 198, 202});
  const KeptCandidate slow = passed("slow", {100, 99, 101});
  const KeptCandidate equal = passed("equal", {199, 196, 203});
  const auto by_time = advantage(fast, slow);
  ASSERT_TRUE(by_time);
  EXPECT_FALSE(by_time->by_verdict);
  EXPECT_DOUBLE_EQ(by_time->speedup, 2.0);
  EXPECT_DOUBLE_EQ(by_time->speedup_low, 198.0 / 101.0);
  EXPECT_DOUBLE_EQ(by_time->speedup_high, 202.0 / 99.0);
  EXPECT_FALSE(advantage(slow, fast));
  EXPECT_FALSE(advantage(fast, equal));
  EXPECT_TRUE(advantage(slow, failed("wrong"))->by_verdict);
  EXPECT_FALSE(advantage(failed("wrong"), slow));
  EXPECT_FALSE(advantage(failed("wrong"), failed("other")));
}

TEST(Advantage, ComparesTimesOfOneDeviceAndOneReferenceAlone) {
  const KeptCandidate fast = passed("fast", {200, 198, 202});
  EXPECT_FALSE(advantage(fast, passed("slow", {100, 99, 101}, "another")));
  KeptCandidate beside_another = passed("slow", {100, 99, 101});
  beside_another.outcome.reference = "another";
  EXPECT_FALSE(advantage(fast, beside_another));
  KeptCandidate without = passed("slow", {100, 99, 101});
  without.evaluation.references.clear();
  EXPECT_FALSE(advantage(fast, without));
}

TEST(Preferences, GrowWithTheCandidatesAndNotWithTheirSquare) {
  std::vector<KeptCandidate> candidates;
  for (int i = 0; i < 40; ++i) {
    const double value = 100 + 10 * i;
    candidates.push_back(passed("c" + std::to_string(i), {value, value - 1, value + 1}));
  }
  std::vector<const KeptCandidate*> pointers;
  for (const KeptCandidate& one : candidates) pointers.push_back(&one);
  const auto preferences = preferences_among(pointers);
  EXPECT_EQ(preferences.size(), 39u + 38u);
  for (const Preference& one : preferences) {
    EXPECT_GT(one.better->evaluation.headline()->percent_of_reference->value,
              one.worse->evaluation.headline()->percent_of_reference->value);
  }
  EXPECT_EQ(preferences.front().better->id, "c39");
  EXPECT_TRUE(preferences_among({}).empty());
}

}  // namespace
}  // namespace rekernel
