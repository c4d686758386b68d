#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/evaluation/rig.h"

namespace rekernel {

inline constexpr const char* shared_gpu_message =
    "the GPU is being shared: kernels of ours that never pause stand still there for a time. Times "
    "would mean nothing; end what else computes there, or give --shared-gpu, whose times are not "
    "recorded";

/// A loaded candidate before the judge: the phases of an evaluation, each of which adds to the
/// result what it finds out. A phase that rejects the candidate ends the evaluation.
class Trial {
 public:
  /// Keeps all of them.
  Trial(Rig& rig, const Subject& subject, const CompiledProgram& code, Evaluation& result)
      : rig_(rig), subject_(subject), code_(code), result_(result) {}

  /// Values, bounds and badges, on so many seeds.
  std::optional<Rejection> check_seeds(int seeds);
  /// Repeated runs on the same inputs, the last in another process.
  std::optional<Rejection> check_determinism();
  /// Wrong values on the stress inputs cost the badge; writing where nothing is to be written costs
  /// more.
  std::optional<Rejection> check_stress_inputs();

  /// Runs that are judged as timed ones are, and not timed.
  std::optional<Rejection> judge_samples();
  /// Candidate and libraries in random order, judged unannounced, with the witness of the clock.
  std::optional<Rejection> time_samples(const ClockCalibration& calibration);
  /// References in other processes, in alternating blocks.
  std::optional<Rejection> time_external_references();

  /// Between samples nothing of a candidate runs: `forged_time` where something does. Throws
  /// SetupFailure where it is somebody else's.
  std::optional<Rejection> look_for_company();

  /// The libraries' errors alone, and what is known of them.
  void note_references_without_times();

 private:
  void compare_with_libraries(std::uint64_t seed, const ErrorStats& candidate, bool first_seed);
  std::set<int> unannounced_checks(int samples);
  std::set<int> randomly_chosen(std::size_t count, int samples);
  RunTimes sample(bool judged, std::optional<Rejection>& rejection);
  ReferenceResult describe(const PreparedReference& reference) const;
  void note_noise(const std::vector<std::int64_t>& repeated_headline);
  void note_badge(const std::string& reason);

  Rig& rig_;
  Subject subject_;
  const CompiledProgram& code_;
  Evaluation& result_;
  std::map<std::string, ErrorStats> reference_errors_;
  int interruptions_ = 0;  ///< of the GPU in runs that were watched
  std::chrono::steady_clock::duration judgement_ =
      std::chrono::steady_clock::duration::max();  ///< how long one takes
};

}  // namespace rekernel
