#include "harness/evaluation/witness.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

constexpr std::int64_t handover = 294000;

/// Runs of one length: the stamps exceed the events by the handover, and by `forged` more.
std::vector<RunTimes> runs_of(std::int64_t events_ns, std::int64_t extra_ns = 0, int count = 60) {
  std::vector<RunTimes> runs;
  for (int i = 0; i < count; ++i) {
    const std::int64_t noise = (i % 7 - 3) * 150;
    runs.push_back({events_ns, events_ns + handover + extra_ns + noise, 90000, 33000, 60000});
  }
  return runs;
}

ClockCalibration calibration() {
  return calibrate({{"nothing", runs_of(1300, -4000)}, {"copy", runs_of(35000)}});
}

TEST(Witness, TheHandoverIsTheLongestOfTheKnownWorks) {
  const ClockCalibration found = calibration();
  EXPECT_EQ(found.handover_ns, handover);
  EXPECT_EQ(found.spread_ns, 450);
  EXPECT_EQ(found.shortest_handover_ns, handover - 4000);
  EXPECT_EQ(found.own.prepare_ns, 90000);
  EXPECT_EQ(found.own.flush_ns, 33000);
  EXPECT_EQ(found.own.snapshot_ns, 60000);
  ASSERT_EQ(found.works.size(), 2u);
  EXPECT_EQ(found.works[0].median.events_ns, 1300);
}

TEST(Witness, ACalibrationWaitsUntilTheHandoverIsAtRest) {
  std::vector<CalibrationRound> rounds;
  const auto add = [&](std::int64_t extra_ns) { rounds.push_back(runs_of(35000, extra_ns, 8)); };
  for (int i = 0; i < 5; ++i) add(0);
  EXPECT_FALSE(is_steady(rounds));  // too few
  rounds.clear();
  for (const std::int64_t extra_ns : {15000, 12500, 10000, 7500, 5000, 2500}) add(extra_ns);
  EXPECT_FALSE(is_steady(rounds));
  for (const std::int64_t extra_ns : {300, 0, -200, 100, 0}) add(extra_ns);
  EXPECT_FALSE(is_steady(std::span(rounds).first(9)));
  EXPECT_TRUE(is_steady(rounds));
}

TEST(Witness, AgreesWithHonestEvents) {
  for (const std::int64_t events_ns : {5000, 50000, 500000, 5000000}) {
    for (const std::int64_t extra_ns : {-4000, 0, 1000}) {
      const Witness witness = witness_of(calibration(), runs_of(events_ns, extra_ns));
      EXPECT_EQ(witness.median_ns, events_ns + extra_ns);
      EXPECT_EQ(check_clock(witness), std::nullopt) << events_ns << " " << extra_ns;
    }
  }
}

TEST(Witness, ASteadyCalibrationAllowsTheHandoverToMove) {
  const ClockCalibration steady = calibrate({{"nothing", runs_of(1300)}, {"copy", runs_of(35000)}});
  EXPECT_EQ(check_clock(witness_of(steady, runs_of(60000, 7000))), std::nullopt);
  EXPECT_EQ(check_clock(witness_of(steady, runs_of(60000, -7000))), std::nullopt);
  EXPECT_TRUE(check_clock(witness_of(steady, runs_of(60000, 9000))));
  EXPECT_TRUE(check_clock(witness_of(steady, runs_of(60000, -9000))));
}

TEST(Witness, EventsThatSayTooLittleAreForged) {
  // 0.788 ms of which the events say 5% less, and 0.05 ms of which they say 20% less.
  for (const auto& [true_ns, forged_ns] : {std::pair(788000, 39400), std::pair(50000, 10000)}) {
    const Witness witness = witness_of(calibration(), runs_of(true_ns - forged_ns, forged_ns));
    const auto rejection = check_clock(witness);
    ASSERT_TRUE(rejection) << true_ns;
    EXPECT_EQ(rejection->status, Status::forged_time);
  }
}

TEST(Witness, WhoForgesHalfOfTheSamplesIsCaught) {
  std::vector<RunTimes> runs = runs_of(500000);
  for (std::size_t i = 0; i < runs.size(); i += 2) runs[i].events_ns -= 50000;
  EXPECT_TRUE(check_clock(witness_of(calibration(), runs)));
}

TEST(Witness, OneSliceOfAnotherProcessDoesNotAccuse) {
  std::vector<RunTimes> runs = runs_of(500000);
  runs[3].stamps_ns += 2000000;
  runs[40].stamps_ns += 2000000;
  EXPECT_EQ(check_clock(witness_of(calibration(), runs)), std::nullopt);
}

TEST(Witness, WorkThatGoesOnSlowsTheRefereesOwnKernels) {
  for (const auto field : {&RunTimes::prepare_ns, &RunTimes::flush_ns, &RunTimes::snapshot_ns}) {
    std::vector<RunTimes> runs = runs_of(500000);
    const bool flush = field == &RunTimes::flush_ns;
    // Drawing inputs may take 12% longer.
    if (field == &RunTimes::prepare_ns) {
      for (RunTimes& run : runs) run.*field += 9000;
    }
    for (RunTimes& run : runs) run.*field += flush ? 25000 : 60000;
    EXPECT_EQ(check_clock(witness_of(calibration(), runs)), std::nullopt);
    for (RunTimes& run : runs) run.*field += 20000;
    const auto rejection = check_clock(witness_of(calibration(), runs));
    ASSERT_TRUE(rejection);
    EXPECT_NE(rejection->message.find("still runs"), std::string::npos) << rejection->message;
  }
}

TEST(Witness, WorkThatTheStampsDoNotSeeIsForged) {
  const auto rejection = check_clock(witness_of(calibration(), runs_of(500000, -30000)));
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->status, Status::forged_time);
}

TEST(Witness, AnotherProcessShowsInTheLibrariesRuns) {
  EXPECT_EQ(check_flush_beside(calibration(), runs_of(2700000)), std::nullopt);
  std::vector<RunTimes> other_memory = runs_of(2700000);
  for (RunTimes& run : other_memory) run.prepare_ns *= 3;
  EXPECT_EQ(check_flush_beside(calibration(), other_memory), std::nullopt);
  std::vector<RunTimes> slow = runs_of(2700000);
  for (RunTimes& run : slow) run.flush_ns *= 3;
  EXPECT_TRUE(check_flush_beside(calibration(), slow));
}

TEST(Witness, AReferenceMustNotBeSlowedDown) {
  EXPECT_EQ(check_reference("cudnn_softmax", 1500000, 1500000), std::nullopt);
  EXPECT_EQ(check_reference("cudnn_softmax", 1500000, 1650000), std::nullopt);
  EXPECT_EQ(check_reference("cublas_fp16", 20000, 26000), std::nullopt);  // some ticks
  const auto rejection = check_reference("cudnn_softmax", 1500000, 1700000);
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->status, Status::forged_time);
  EXPECT_NE(rejection->message.find("cudnn_softmax takes 1700.0 us"), std::string::npos);
}

TEST(Witness, SurvivesJson) {
  const Witness witness = witness_of(calibration(), runs_of(500000, 900));
  const boost::json::value json = to_json(witness);
  JsonReader reader("witness", json);
  const Witness read = witness_from_json(reader);
  ASSERT_EQ(reader.error(), std::nullopt);
  EXPECT_EQ(boost::json::serialize(to_json(read)), boost::json::serialize(json));
}

}  // namespace
}  // namespace rekernel
