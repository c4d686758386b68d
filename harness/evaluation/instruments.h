#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/judgement.h"
#include "harness/evaluation/schedule.h"
#include "harness/evaluation/witness.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// A reference that is ready to run, or why there is none.
struct ReferenceState {
  std::string id;
  std::string details;
  std::string unavailable;    ///< why there is none; empty if there is
  std::int64_t alone_ns = 0;  ///< median time before any code of a candidate was loaded
};

/// What a trial measures with: runs of a loaded candidate and of references, and the referee's
/// comparison of what the last run wrote. A rig's on a device; a stand-in's in tests.
class Instruments {
 public:
  virtual ~Instruments() = default;

  /// 64 bits that no kernel can foresee.
  virtual std::uint64_t fresh_seed() = 0;

  /// One run of the candidate in one of its processes. Throws RunnerFailure. `takes_time`: a run
  /// while the GPU was throttled is made again, with another seed, which the input then has.
  virtual RunTimes run_candidate(int process, PlannedInput& input, bool takes_time) = 0;
  /// One timed run of a reference, on new inputs.
  virtual RunTimes run_reference(std::size_t reference) = 0;

  /// The candidate's last outputs against the truth.
  virtual Judgement judge(const PlannedInput& input) = 0;
  /// The errors of the last outputs, whatever else is wrong with them.
  virtual ErrorStats measure_errors() = 0;
  /// The errors of a reference on inputs that the candidate ran on. The candidate's outputs are
  /// gone afterwards.
  virtual ErrorStats reference_errors(std::size_t reference, const PlannedInput& input) = 0;
  /// A digest of the last outputs: equal ones have equal digests.
  virtual std::string digest() = 0;
  /// The beginning of the last run's largest output.
  virtual std::vector<std::uint32_t> first_words(std::size_t count) = 0;

  /// Whether something else has slices of the GPU at this moment, or is just leaving it.
  virtual bool is_interrupted() = 0;
  /// The candidate's processes end, and what runs of them.
  virtual void end_candidate() = 0;

  /// References in processes of their own: so many times of one, made in a block, in nanoseconds.
  virtual Result<std::vector<std::int64_t>> time_external(std::size_t external, int count) = 0;
  /// Details of an external reference that was timed.
  virtual std::string external_details(std::size_t external) = 0;
};

}  // namespace rekernel
