#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/instruments.h"
#include "harness/evaluation/laps.h"
#include "harness/evaluation/request.h"

namespace rekernel {

inline constexpr const char* shared_gpu_message =
    "the GPU is being shared: kernels of ours that never pause stand still there for a time. Times "
    "would mean nothing; end what else computes there, or give --shared-gpu, whose times are not "
    "recorded";

/// How many runs of each kind a candidate gets, by what it costs the referee to judge one, and by
/// nothing that the candidate decides.
ScheduleRequest verdict_schedule(const Problem& problem, const EvaluateOptions& options,
                                 std::chrono::nanoseconds judgement);
/// The same for blocks beside a reference of another process.
ScheduleRequest external_schedule(const Problem& problem, const EvaluateOptions& options,
                                  std::chrono::nanoseconds judgement);
/// As in a verdict, but so many of all kinds that what tells them apart can be found.
ScheduleRequest blinding_schedule(const Problem& problem, const EvaluateOptions& options);
/// For errors alone.
ScheduleRequest errors_schedule(const Problem& problem, const EvaluateOptions& options);

/// A loaded candidate before the judge. All runs of a candidate are made in one random order, in
/// two processes, whatever they are for (schedule.h): what is timed is what was judged. A run that
/// rejects the candidate ends the trial.
class Trial {
 public:
  /// Keeps all of them.
  Trial(Instruments& instruments, const Problem& problem, const EvaluateOptions& options,
        const std::vector<ReferenceState>& references, Laps& laps, Evaluation& result)
      : instruments_(instruments),
        problem_(problem),
        options_(options),
        references_(references),
        laps_(laps),
        result_(result) {}

  /// Candidate and references in random order, with the witness of the clock: one calibration for
  /// each process of the candidate.
  std::optional<Rejection> time(const ScheduleRequest& request,
                                const std::vector<ClockCalibration>& calibrations);
  /// References in other processes, in alternating blocks.
  std::optional<Rejection> time_beside_externals(const ScheduleRequest& request,
                                                 const std::vector<ClockCalibration>& calibrations);
  /// The same runs of the candidate alone: no time is taken.
  std::optional<Rejection> judge_without_times(const ScheduleRequest& request);

  /// Between runs nothing of a candidate runs: `forged_time` where something does. Throws
  /// SetupFailure where it is somebody else's.
  std::optional<Rejection> look_for_interruptions();

  /// The badges, once all runs are made.
  void award_badges();

  /// Is told of each run after it was made and judged. A trial with an observer goes on whatever
  /// the values are: it is one of a kernel that tells what it sees.
  using Observer = std::function<void(const PlannedRun&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  /// What is known of a run's inputs.
  struct InputState {
    PlannedInput input;
    bool shared = false;
    std::vector<std::string> digests;
    std::string judged_digest;
  };
  class Runs;

  Runs begin(const ScheduleRequest& request);
  std::optional<Rejection> step(Runs& runs);
  std::optional<Rejection> examine(const PlannedRun& run, InputState& state);
  std::optional<Rejection> judge_output(const PlannedInput& input);
  void note_errors(const ErrorStats& stats);
  void compare_with_references(const PlannedInput& input, const ErrorStats& candidate);
  std::optional<Rejection> check_clocks(const std::vector<ClockCalibration>& calibrations,
                                        const Runs& runs, std::vector<Witness>* witnesses);
  std::optional<std::size_t> headline() const;
  ReferenceResult describe(const ReferenceState& reference) const;
  void note_noise(const std::vector<std::int64_t>& repeated_headline);
  void note_badge(const std::string& reason);

  Instruments& instruments_;
  const Problem& problem_;
  const EvaluateOptions& options_;
  const std::vector<ReferenceState>& references_;
  Laps& laps_;
  Evaluation& result_;
  Observer observer_;
  std::map<std::string, ErrorStats> reference_errors_;
  std::map<int, double> stress_;   ///< stress case → the largest |err| ÷ tolerance
  std::set<int> stress_left_out_;  ///< those whose truth is not finite everywhere
  std::string stress_failure_;     ///< what costs `robust`
  int interruptions_ = 0;          ///< of the GPU in runs that were watched
};

}  // namespace rekernel
