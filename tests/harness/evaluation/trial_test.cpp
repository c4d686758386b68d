#include "harness/evaluation/trial.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "harness/evaluation/setup_failure.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

constexpr std::int64_t handover_ns = 290000;
constexpr std::int64_t kernel_ns = 500000;
constexpr std::chrono::nanoseconds cheap_judgement{1};

/// What a made-up kernel did in one run.
struct Output {
  std::string digest = "right";
  double tolerance_ratio = 0.5;
  double strict_ratio = 0.5;
  std::optional<Rejection> rejection;
  std::int64_t events_ns = kernel_ns;
  std::int64_t takes_ns = kernel_ns;
};

/// What it could count and see.
struct Sight {
  int process = 0;
  int launches = 0;  ///< of its process, before this one
  PlannedInput input;
  bool beside_external = false;
};

using Kernel = std::function<Output(const Sight&)>;

/// Runs and judgements without a device.
class FakeInstruments : public Instruments {
 public:
  explicit FakeInstruments(Kernel kernel, std::uint64_t seed = 1)
      : kernel_(std::move(kernel)), random_(seed) {}

  std::uint64_t fresh_seed() override { return random_(); }
  RunTimes run_candidate(int process, PlannedInput& input, bool takes_time) override {
    ++candidate_runs;
    if (takes_time && throttled_runs > 0) {
      --throttled_runs;
      input.seed = fresh_seed();
    }
    int& launches = launches_[process];
    last_ = kernel_({process, launches++, input, externals > 0});
    // Equal inputs give equal outputs, unless the kernel says otherwise.
    if (last_.digest == "right") last_.digest += std::to_string(input.seed);
    return {last_.events_ns, last_.takes_ns + handover_ns, 0, 0, 0};
  }
  RunTimes run_reference(std::size_t) override {
    ++reference_runs;
    return {reference_ns, reference_ns + handover_ns, 0, 0, 0};
  }
  Judgement judge(const PlannedInput& input) override {
    judged.push_back(input);
    if (input.stress_case == without_truth) return {{}, {}, false};
    return {last_.rejection, errors(last_.tolerance_ratio, last_.strict_ratio)};
  }
  ErrorStats measure_errors() override { return errors(last_.tolerance_ratio, 1); }
  ErrorStats reference_errors(std::size_t, const PlannedInput&) override {
    return errors(0.1, library_strict_ratio);
  }
  std::string digest() override { return last_.digest; }
  std::vector<std::uint32_t> first_words(std::size_t) override { return {42}; }
  bool is_interrupted() override { return interruptions-- > 0; }
  void end_candidate() override {
    if (ends_with_candidate) interruptions = 0;
  }
  Result<std::vector<std::int64_t>> time_external(std::size_t, int count) override {
    ++externals;
    return std::vector<std::int64_t>(static_cast<std::size_t>(count), reference_ns);
  }
  std::string external_details(std::size_t) override { return "made up"; }

  int candidate_runs = 0;
  int reference_runs = 0;
  int externals = 0;
  int throttled_runs = 0;
  int interruptions = 0;
  bool ends_with_candidate = false;
  int without_truth = -2;  ///< the stress case whose truth is not finite everywhere
  double library_strict_ratio = 0.5;
  std::int64_t reference_ns = 1000000;
  std::vector<PlannedInput> judged;

 private:
  /// `max_abs` follows the strict ratio, as if the truth were about 1.
  static ErrorStats errors(double tolerance_ratio, double strict_ratio) {
    ErrorStats stats;
    stats.max_abs = stats.rms = strict_ratio * 1e-4;
    stats.truth_rms = 1;
    stats.worst_tolerance_ratio = tolerance_ratio;
    stats.worst_strict_ratio = strict_ratio;
    return stats;
  }

  Kernel kernel_;
  std::mt19937_64 random_;
  std::map<int, int> launches_;
  Output last_;
};

std::vector<ClockCalibration> calibrations() {
  const std::vector<RunTimes> runs(8, RunTimes{1000, 1000 + handover_ns, 0, 0, 0});
  const ClockCalibration calibration = calibrate({{"nothing", runs}});
  return {calibration, calibration};
}

/// What an evaluation of the kernel gives.
struct Outcome {
  Evaluation evaluation;
  std::optional<Rejection> rejection;
  bool has(Badge badge) const { return evaluation.earned_badges().has(badge); }
};

class TrialTest : public testing::Test {
 protected:
  Outcome verdict(FakeInstruments& instruments) {
    Outcome outcome;
    Evaluation& result = outcome.evaluation;
    Laps laps(result.split_ns);
    Trial trial(instruments, problem, options, references, laps, result);
    outcome.rejection =
        trial.time(verdict_schedule(problem, options, cheap_judgement), calibrations());
    if (!outcome.rejection) {
      outcome.rejection = trial.time_beside_externals(
          external_schedule(problem, options, cheap_judgement), calibrations());
    }
    trial.award_badges();
    result.status = outcome.rejection ? outcome.rejection->status : Status::passed;
    return outcome;
  }
  Outcome verdict(const Kernel& kernel, std::uint64_t seed = 1) {
    FakeInstruments instruments(kernel, seed);
    return verdict(instruments);
  }

  Problem problem = sized_problem("softmax", {{"rows", 8}, {"columns", 64}});
  EvaluateOptions options;
  std::vector<ReferenceState> references = {{"cudnn_softmax", "details", "", 1000000}};
};

Output exact() { return {}; }
Output sloppy() { return {.digest = "sloppy", .tolerance_ratio = 0.9, .strict_ratio = 20}; }

TEST_F(TrialTest, AnHonestKernelPassesWithItsBadges) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  const Outcome outcome = verdict(instruments);
  EXPECT_EQ(outcome.rejection, std::nullopt);
  const Evaluation& result = outcome.evaluation;
  EXPECT_EQ(result.earned_badges(), (Badges{Badge::strict, Badge::robust, Badge::deterministic}));
  EXPECT_EQ(result.badge_notes, "");
  EXPECT_EQ(result.timing->samples_ns.size(), 60u);
  EXPECT_EQ(result.timing->median_ns, kernel_ns);
  ASSERT_EQ(result.witnesses.size(), 2u);
  EXPECT_EQ(result.witnesses[1].median_ns, kernel_ns);
  EXPECT_EQ(instruments.reference_runs, 80);
  EXPECT_EQ(result.references.at(0).timing.median_ns, 1000000);
  EXPECT_TRUE(result.references.at(0).errors);
  EXPECT_EQ(result.evidence->stress.size(), problem.stress_cases.size());
  for (const auto& [name, ratio] : result.evidence->stress) EXPECT_EQ(ratio, 0.5) << name;
  EXPECT_EQ(result.evidence->digests.size(), 4 + 3 * problem.stress_cases.size());
}

TEST_F(TrialTest, EqualOutputsForEqualInputsAreJudgedOnce) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  verdict(instruments);
  std::set<std::uint64_t> seeds;
  for (const PlannedInput& input : instruments.judged) {
    EXPECT_TRUE(seeds.insert(input.seed).second);
  }
  EXPECT_EQ(seeds.size(), 60 + 3 * problem.stress_cases.size());
}

TEST_F(TrialTest, AnExpensiveTruthIsMadeLessOften) {
  const ScheduleRequest cheap = verdict_schedule(problem, options, cheap_judgement);
  const ScheduleRequest dear = verdict_schedule(problem, options, std::chrono::milliseconds(20));
  EXPECT_GE(cheap.judged, 60);
  EXPECT_EQ(cheap.inputs_per_case, 3);
  EXPECT_EQ(dear.judged, 12);
  EXPECT_EQ(dear.inputs_per_case, 1);
  EXPECT_EQ(cheap.runs_per_case, 3);
  EXPECT_EQ(dear.runs_per_case, 2);
}

TEST_F(TrialTest, SpareRunsOfASlowKernelAreLeftOutAndTheOthersAreJudged) {
  const auto slow = [](const Sight&) {
    return Output{.events_ns = 40'000'000, .takes_ns = 40'000'000};
  };
  FakeInstruments instruments(slow);
  const Outcome outcome = verdict(instruments);
  EXPECT_EQ(outcome.rejection, std::nullopt);
  EXPECT_EQ(outcome.evaluation.earned_badges(),
            (Badges{Badge::strict, Badge::robust, Badge::deterministic}));
  const std::size_t samples = outcome.evaluation.timing->samples_ns.size();
  EXPECT_GE(samples, 12u);
  EXPECT_LT(samples, 40u);
  EXPECT_EQ(outcome.evaluation.evidence->stress.size(), problem.stress_cases.size());
  EXPECT_LE(instruments.candidate_runs,
            26 + 12 + 4 + 2 * static_cast<int>(problem.stress_cases.size()));
  EXPECT_EQ(outcome.evaluation.timing->median_ns, 40'000'000);
}

TEST_F(TrialTest, WhoIsSlowAtFirstIsJudgedInEveryTimedRunAfterwards) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    int launches = 0;
    const Outcome outcome = verdict(
        [&](const Sight& sight) {
          if (launches++ == 0) return Output{.events_ns = 2'000'000'000, .takes_ns = 2'000'000'000};
          return sight.input.stress_case < 0 ? sloppy() : exact();
        },
        seed);
    EXPECT_FALSE(outcome.has(Badge::strict)) << seed;
    EXPECT_GE(outcome.evaluation.timing->samples_ns.size(), 12u);
  }
}

TEST_F(TrialTest, AWrongResultEndsTheTrial) {
  FakeInstruments instruments([](const Sight&) {
    return Output{.rejection = Rejection{Status::wrong_result, "wrong", "rms error"}};
  });
  const Outcome outcome = verdict(instruments);
  ASSERT_TRUE(outcome.rejection);
  EXPECT_EQ(outcome.rejection->message, "wrong");
  EXPECT_EQ(outcome.rejection->check, "rms error");
  EXPECT_EQ(outcome.evaluation.seeds.size(), 1u);
  EXPECT_LT(instruments.candidate_runs, 40);  // it may have met stress inputs first
  EXPECT_LT(instruments.reference_runs, 60);
  EXPECT_FALSE(outcome.evaluation.timing);
  EXPECT_TRUE(outcome.evaluation.earned_badges().empty());
}

// A kernel that gains needs to be fast in half of its runs: one of the judged ones shows it.
TEST_F(TrialTest, WhoIsWrongInHalfOfTheRunsIsFound) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 coin(seed + 100);
    const Outcome outcome = verdict(
        [&](const Sight&) {
          if (coin() % 2 == 0) return exact();
          return Output{.rejection = Rejection{Status::wrong_result, "wrong", ""}};
        },
        seed);
    EXPECT_EQ(outcome.evaluation.status, Status::wrong_result);
  }
}

TEST_F(TrialTest, ExactWhileItIsAskedGainsNeitherBadgeNorErrors) {
  for (const int exact_runs : {12, 40}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Outcome outcome = verdict(
          [&](const Sight& sight) { return sight.launches < exact_runs ? exact() : sloppy(); },
          seed);
      EXPECT_EQ(outcome.evaluation.status, Status::passed);
      EXPECT_FALSE(outcome.has(Badge::strict)) << exact_runs;
      EXPECT_EQ(outcome.evaluation.errors->worst_strict_ratio, 20) << exact_runs;
    }
  }
}

TEST_F(TrialTest, RobustAtFirstGainsNoBadge) {
  for (const int robust_runs : {12, 40}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Outcome outcome = verdict(
          [&](const Sight& sight) {
            if (sight.input.stress_case < 0 || sight.launches < robust_runs) return exact();
            return Output{.digest = "overflow",
                          .rejection = Rejection{Status::wrong_result, "3 elements", ""}};
          },
          seed);
      EXPECT_EQ(outcome.evaluation.status, Status::passed);
      EXPECT_FALSE(outcome.has(Badge::robust)) << robust_runs;
      EXPECT_TRUE(outcome.has(Badge::strict));
      EXPECT_NE(outcome.evaluation.badge_notes.find("robust: "), std::string::npos);
    }
  }
}

TEST_F(TrialTest, OneStressCaseIsEnough) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = verdict(
        [&](const Sight& sight) {
          if (sight.input.stress_case != 2 || sight.launches < 12) return exact();
          return Output{.digest = "overflow",
                        .rejection = Rejection{Status::wrong_result, "3 elements", ""}};
        },
        seed);
    EXPECT_FALSE(outcome.has(Badge::robust)) << seed;
  }
}

TEST_F(TrialTest, AStressCaseWithoutAFiniteTruthIsLeftOutByName) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.without_truth = 1;
  const Outcome outcome = verdict(instruments);
  EXPECT_TRUE(outcome.has(Badge::robust));
  const std::string& name = problem.stress_cases[1].name;
  EXPECT_EQ(outcome.evaluation.stress_left_out, std::vector<std::string>{name});
  EXPECT_EQ(outcome.evaluation.evidence->stress.size(), problem.stress_cases.size() - 1);
  for (const auto& [judged, ratio] : outcome.evaluation.evidence->stress) EXPECT_NE(judged, name);
}

TEST_F(TrialTest, OtherFaultsOnStressInputsCostTheVerdict) {
  const Outcome outcome = verdict([&](const Sight& sight) {
    if (sight.input.stress_case < 0) return exact();
    return Output{.rejection = Rejection{Status::out_of_bounds_write, "wrote", ""}};
  });
  ASSERT_TRUE(outcome.rejection);
  EXPECT_EQ(outcome.rejection->status, Status::out_of_bounds_write);
  EXPECT_NE(outcome.rejection->message.find("(on the stress inputs "), std::string::npos);
}

TEST_F(TrialTest, DifferentOutputsForEqualInputsCostTheBadge) {
  int run = 0;
  const Outcome outcome =
      verdict([&](const Sight&) { return Output{.digest = std::to_string(run++)}; });
  EXPECT_EQ(outcome.evaluation.status, Status::passed);
  EXPECT_FALSE(outcome.has(Badge::deterministic));
  EXPECT_EQ(outcome.evaluation.badge_notes, "deterministic: repeated runs differ");
  // Each was judged for itself.
  EXPECT_EQ(outcome.evaluation.seeds.size(), 60u + 4u);
}

TEST_F(TrialTest, WhatIsRememberedInOneProcessIsNotInTheOther) {
  const Outcome outcome = verdict([&](const Sight& sight) {
    // From run to run another result, but for the same inputs in the same process.
    return Output{.digest = std::to_string(sight.process) + std::to_string(sight.input.seed)};
  });
  EXPECT_FALSE(outcome.has(Badge::deterministic));
}

TEST_F(TrialTest, StrictMayTakeTwiceTheLibrarysErrors) {
  const Kernel kernel = [](const Sight&) { return Output{.strict_ratio = 3}; };
  FakeInstruments instruments(kernel);
  instruments.library_strict_ratio = 2;
  const Outcome good = verdict(instruments);
  EXPECT_TRUE(good.has(Badge::strict));
  EXPECT_DOUBLE_EQ(*good.evaluation.evidence->strict_share, 0.75);
  FakeInstruments others(kernel);
  others.library_strict_ratio = 1;
  EXPECT_FALSE(verdict(others).has(Badge::strict));
}

TEST_F(TrialTest, StrictAsksForFp32) {
  problem = sized_problem("matmul_fp16", {{"m", 64}, {"n", 64}, {"k", 64}});
  references.clear();
  const Outcome outcome = verdict([](const Sight&) { return exact(); });
  EXPECT_FALSE(outcome.has(Badge::strict));
  EXPECT_EQ(outcome.evaluation.badge_notes, "strict asks for an FP32 output");
}

TEST_F(TrialTest, AForgedClockOfEitherProcessIsSeen) {
  for (const int forging : {0, 1}) {
    const Outcome outcome = verdict([&](const Sight& sight) {
      Output output;
      if (sight.process == forging) output.events_ns /= 2;
      return output;
    });
    EXPECT_EQ(outcome.evaluation.status, Status::forged_time) << forging;
    EXPECT_EQ(outcome.evaluation.witnesses.size(), 2u);
  }
}

TEST_F(TrialTest, WrongValuesComeBeforeTheClock) {
  const Outcome outcome = verdict([&](const Sight&) {
    return Output{.rejection = Rejection{Status::wrong_result, "wrong", ""},
                  .events_ns = kernel_ns / 2};
  });
  EXPECT_EQ(outcome.evaluation.status, Status::wrong_result);
}

TEST_F(TrialTest, WhatIsTimedBesideOthersIsJudgedAndWatchedAlike) {
  options.external_references = {"pytorch_eager"};
  const Outcome honest = verdict([](const Sight&) { return exact(); });
  ASSERT_EQ(honest.evaluation.references.size(), 2u);
  EXPECT_EQ(honest.evaluation.references[1].kernel_samples_ns.size(), 60u);
  EXPECT_EQ(honest.evaluation.references[1].timing.samples_ns.size(), 60u);
  EXPECT_EQ(honest.evaluation.earned_badges().list().size(), 3u);

  const Outcome fast =
      verdict([](const Sight& sight) { return sight.beside_external ? sloppy() : exact(); });
  EXPECT_EQ(fast.evaluation.status, Status::passed);
  EXPECT_FALSE(fast.has(Badge::strict));
  EXPECT_EQ(fast.evaluation.errors->worst_strict_ratio, 20);

  const Outcome overflows = verdict([](const Sight& sight) {
    if (!sight.beside_external || sight.input.stress_case < 0) return exact();
    return Output{.digest = "no", .rejection = Rejection{Status::wrong_result, "NaN", ""}};
  });
  EXPECT_FALSE(overflows.has(Badge::robust));

  const Outcome forged = verdict([](const Sight& sight) {
    Output output;
    if (sight.beside_external) output.events_ns /= 2;
    return output;
  });
  EXPECT_EQ(forged.evaluation.status, Status::forged_time);
}

TEST_F(TrialTest, WhatGoesOnAfterItsEndIsTheCandidatesIfItEndsWithIt) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.interruptions = 1 << 20;
  instruments.ends_with_candidate = true;
  EXPECT_EQ(verdict(instruments).evaluation.status, Status::forged_time);
}

TEST_F(TrialTest, OneInterruptionAccusesNobody) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.interruptions = 1;
  EXPECT_EQ(verdict(instruments).evaluation.status, Status::passed);
}

TEST_F(TrialTest, WhatGoesOnWithoutTheCandidateIsAFailureOfTheSetUp) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.interruptions = 1 << 30;
  EXPECT_THROW(verdict(instruments), SetupFailure);
}

TEST_F(TrialTest, ASharedGpuAccusesNobodyAndGivesNoBadge) {
  options.shared_gpu = true;
  FakeInstruments instruments([](const Sight&) { return Output{.events_ns = kernel_ns / 2}; });
  instruments.interruptions = 1 << 30;
  instruments.reference_ns = 5000000;  // beside others' work
  const Outcome outcome = verdict(instruments);
  EXPECT_EQ(outcome.evaluation.status, Status::passed);
  EXPECT_TRUE(outcome.evaluation.earned_badges().empty());
  EXPECT_EQ(outcome.evaluation.badge_notes,
            "strict: not given on a shared GPU; robust: not given on a shared GPU; "
            "deterministic: not given on a shared GPU");
}

TEST_F(TrialTest, ASlowedReferenceIsSeen) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.reference_ns = 1200000;  // 1000000 before the candidate was loaded
  EXPECT_EQ(verdict(instruments).evaluation.status, Status::forged_time);
}

TEST_F(TrialTest, ARunThatWasThrownAwayIsNoRepeat) {
  FakeInstruments instruments([](const Sight&) { return exact(); });
  instruments.throttled_runs = 60;
  const Outcome outcome = verdict(instruments);
  EXPECT_TRUE(outcome.has(Badge::deterministic));
  EXPECT_EQ(outcome.evaluation.timing->samples_ns.size(), 60u);
}

TEST_F(TrialTest, ErrorsAloneNeedNoTimes) {
  options.mode = EvaluateOptions::Mode::errors;
  options.samples = 8;
  FakeInstruments instruments([](const Sight&) { return exact(); });
  Evaluation result;
  Laps laps(result.split_ns);
  Trial trial(instruments, problem, options, references, laps, result);
  EXPECT_EQ(trial.judge_without_times(errors_schedule(problem, options)), std::nullopt);
  trial.award_badges();
  result.status = Status::passed;
  EXPECT_EQ(result.earned_badges().list().size(), 3u);
  EXPECT_EQ(result.seeds.size(), 8u);
  EXPECT_FALSE(result.timing);
  ASSERT_EQ(result.references.size(), 1u);
  EXPECT_TRUE(result.references[0].errors);
  EXPECT_EQ(instruments.reference_runs, 0);
}

TEST_F(TrialTest, AnObserverSeesEveryRunWhateverItsValues) {
  options.samples = 20;
  FakeInstruments instruments([](const Sight&) {
    return Output{.rejection = Rejection{Status::wrong_result, "no result", ""}};
  });
  Evaluation result;
  Laps laps(result.split_ns);
  Trial trial(instruments, problem, options, references, laps, result);
  std::map<Purpose, int> seen;
  trial.observe([&](const PlannedRun& run) { ++seen[run.purpose]; });
  trial.time(blinding_schedule(problem, options), calibrations());
  EXPECT_EQ(seen[Purpose::timed], 40);
  EXPECT_EQ(seen[Purpose::repeat], 20);
  EXPECT_GE(seen[Purpose::stress], 20);
}

TEST_F(TrialTest, TheFirstSeedCanBeGiven) {
  options.seed = 1000;
  const Outcome outcome = verdict([](const Sight&) { return exact(); });
  for (const std::uint64_t seed : outcome.evaluation.seeds) {
    EXPECT_GE(seed, 1000u);
    EXPECT_LT(seed, 1200u);
  }
}

}  // namespace
}  // namespace rekernel
