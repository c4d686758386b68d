#include "harness/evaluation/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include <map>
#include <random>
#include <set>

namespace rekernel {
namespace {

ScheduleRequest whole_request() {
  ScheduleRequest request;
  request.timed = 60;
  request.judged = 20;
  request.watched = 4;
  request.repeats = 3;
  request.stress_cases = 5;
  request.inputs_per_case = 2;
  request.runs_per_case = 3;
  return request;
}

Schedule drawn(const ScheduleRequest& request, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return draw_schedule(request, [&] { return random(); });
}

TEST(Schedule, HasTheRunsThatWereAskedFor) {
  const ScheduleRequest request = whole_request();
  const Schedule schedule = drawn(request, 1);
  std::map<Purpose, int> purposes;
  std::map<std::pair<Purpose, int>, int> by_process;
  int watched = 0;
  int judged = 0;
  for (const PlannedRun& run : schedule.runs) {
    ++purposes[run.purpose];
    ++by_process[{run.purpose, run.process}];
    watched += run.watched ? 1 : 0;
    judged += run.judged && run.purpose == Purpose::timed ? 1 : 0;
    EXPECT_EQ(run.purpose == Purpose::stress, schedule.inputs[run.input].stress_case >= 0);
  }
  EXPECT_EQ(purposes[Purpose::timed], 60);
  EXPECT_EQ(purposes[Purpose::repeat], 6);
  EXPECT_EQ(purposes[Purpose::stress], 5 * 3 * 2);
  EXPECT_EQ((by_process[{Purpose::timed, 0}]), 30);
  EXPECT_EQ((by_process[{Purpose::stress, 1}]), 15);
  EXPECT_EQ(watched, 4);
  EXPECT_GE(judged, 20);
  EXPECT_LE(judged, 26);  // those that are repeated as well
}

TEST(Schedule, TimedRunsHaveInputsOfTheirOwnButForTheRepeated) {
  const Schedule schedule = drawn(whole_request(), 2);
  std::map<std::size_t, int> timed;
  std::set<std::uint64_t> seeds;
  for (const PlannedRun& run : schedule.runs) timed[run.input] += run.purpose == Purpose::timed;
  for (const auto& [input, runs] : timed) EXPECT_LE(runs, 1);
  for (const PlannedInput& input : schedule.inputs) {
    EXPECT_TRUE(seeds.insert(input.seed).second);
  }
}

TEST(Schedule, ARepeatInTheSameProcessComesLaterAndOneInTheOtherEarlier) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Schedule schedule = drawn(whole_request(), seed);
    int same = 0;
    for (std::size_t i = 0; i < schedule.runs.size(); ++i) {
      const PlannedRun& repeat = schedule.runs[i];
      if (repeat.purpose != Purpose::repeat) continue;
      EXPECT_TRUE(schedule.is_shared(repeat.input));
      for (std::size_t j = 0; j < schedule.runs.size(); ++j) {
        const PlannedRun& timed = schedule.runs[j];
        if (timed.purpose != Purpose::timed || timed.input != repeat.input) continue;
        EXPECT_TRUE(timed.judged);
        const bool same_process = timed.process == repeat.process;
        same += same_process ? 1 : 0;
        EXPECT_EQ(i > j, same_process);
      }
    }
    EXPECT_EQ(same, 3);
  }
}

TEST(Schedule, EveryStressInputIsRunInBothProcesses) {
  for (const int inputs : {1, 2, 3}) {
    ScheduleRequest request = whole_request();
    request.inputs_per_case = inputs;
    const Schedule schedule = drawn(request, 3);
    std::map<std::size_t, std::set<int>> processes;
    std::map<int, std::set<std::size_t>> of_case;
    for (const PlannedRun& run : schedule.runs) {
      if (run.purpose != Purpose::stress) continue;
      EXPECT_TRUE(run.judged);
      processes[run.input].insert(run.process);
      of_case[schedule.inputs[run.input].stress_case].insert(run.input);
    }
    EXPECT_EQ(of_case.size(), 5u);
    for (const auto& [number, of_it] : of_case) {
      EXPECT_EQ(of_it.size(), static_cast<std::size_t>(inputs));
    }
    for (const auto& [input, both] : processes) EXPECT_EQ(both.size(), 2u);
  }
}

// What a kernel can count is its place among the runs of its process. Over many schedules, the mean
// place of every purpose and of judged runs is the middle, within five standard errors.
TEST(Schedule, ThePlaceOfARunSaysNothingOfItsPurpose) {
  struct Places {
    double sum = 0;
    int count = 0;
  };
  std::map<std::string, Places> places;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = drawn(whole_request(), seed);
    std::map<int, int> launches;
    std::map<int, int> all;
    for (const PlannedRun& run : schedule.runs) ++all[run.process];
    for (const PlannedRun& run : schedule.runs) {
      const double place = (launches[run.process]++ + 0.5) / all[run.process];
      const auto note = [&, place](const std::string& kind) {
        places[kind].sum += place;
        ++places[kind].count;
      };
      note(run.purpose == Purpose::timed    ? "timed"
           : run.purpose == Purpose::repeat ? "repeat"
                                            : "stress");
      if (run.purpose == Purpose::timed) note(run.judged ? "judged" : "not judged");
      if (run.watched) note("watched");
      if (run.process == 0) note("first process");
    }
  }
  EXPECT_EQ(places.size(), 7u);
  for (const auto& [kind, found] : places) {
    const double standard_error = std::sqrt(1.0 / 12.0 / found.count);
    EXPECT_NEAR(found.sum / found.count, 0.5, 5 * standard_error) << kind;
    EXPECT_GT(found.count, 1000) << kind;
  }
}

TEST(Schedule, TwoDrawsDiffer) {
  const auto purposes = [](const Schedule& schedule) {
    std::vector<Purpose> all;
    for (const PlannedRun& run : schedule.runs) all.push_back(run.purpose);
    return all;
  };
  EXPECT_NE(purposes(drawn(whole_request(), 1)), purposes(drawn(whole_request(), 2)));
}

TEST(Schedule, FewerRunsThanAskedForAreAllJudged) {
  ScheduleRequest request;
  request.timed = 3;
  request.judged = 100;
  request.repeats = 5;
  const Schedule schedule = drawn(request, 4);
  EXPECT_EQ(schedule.runs.size(), 6u);  // three are repeated
  for (const PlannedRun& run : schedule.runs) EXPECT_TRUE(run.judged);
}

}  // namespace
}  // namespace rekernel
