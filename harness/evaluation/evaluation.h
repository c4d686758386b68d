#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/badge.h"
#include "harness/candidate/status.h"
#include "harness/compile/compile.h"
#include "harness/device/error_stats.h"
#include "harness/evaluation/witness.h"
#include "harness/problems/problem_file.h"
#include "ops/result.h"

namespace rekernel {

/// Times of one runnable. All integer nanoseconds.
struct Timing {
  std::vector<std::int64_t> samples_ns;
  std::int64_t median_ns = 0;
  std::int64_t low_ns = 0;   ///< 25th percentile
  std::int64_t high_ns = 0;  ///< 75th percentile
};

/// Reference time ÷ kernel time in percent, with its 95% confidence interval.
struct Percent {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct ReferenceResult {
  std::string id;
  std::string details;      ///< engine or algorithm
  std::string unavailable;  ///< why there is no time; empty if there is
  Timing timing;
  std::optional<ErrorStats> errors;  ///< on the candidate's first seed
  std::optional<Percent> percent_of_reference;
  /// The candidate's own times in the blocks beside a reference of another process; empty where the
  /// two were interleaved, and the candidate's timing is what the percentage is made of.
  std::vector<std::int64_t> kernel_samples_ns;
};

/// What a candidate in axes did at sizes that are not its problem's own.
struct SizeResult {
  Sizes sizes;
  Status status = Status::crashed;
  double tolerance_share = 0;  ///< the largest |err| ÷ tolerance
  std::int64_t median_ns = 0;  ///< 0: it was not timed there
};

/// What the badges rest on, so that whoever reads them can make them again.
struct BadgeEvidence {
  std::optional<double> strict_share;  ///< the largest over the seeds; nothing: no FP32 output
  /// Largest |err| ÷ tolerance of each stress case that was run, in the problem's order.
  std::vector<std::pair<std::string, double>> stress;
  /// Digests of outputs, in hexadecimal: a group for each input that was run more than once, in
  /// either process.
  std::vector<std::vector<std::string>> digests;
  /// Of a candidate in axes: at sizes that were drawn, and at those that are timed.
  std::vector<SizeResult> other_sizes;

  bool repeats_agree() const;
};

/// Ceilings of the device, measured in the same process.
struct Ceilings {
  std::int64_t copy_bytes_per_s = 0;
  std::int64_t fp16_flops_per_s = 0;
};

/// State of the GPU around the timed samples.
struct GpuConditions {
  int sm_clock_mhz = 0;  ///< median over the samples
  int temperature_c = 0;
  int power_w = 0;
  std::int64_t throttle_reasons = 0;  ///< NVML bit mask, of reasons that slow the clock
  int rejected_samples = 0;           ///< samples thrown away because of throttling
  std::vector<std::string> graphics;  ///< processes that draw on the GPU, a desktop's
};

/// One run of an A/A experiment: times of the same work under two names, in nanoseconds.
struct NoiseRun {
  std::vector<std::int64_t> first_ns;
  std::vector<std::int64_t> second_ns;
};

/// Everything that was found out about one candidate on one device.
struct Evaluation {
  std::string problem;
  std::string kernel;
  std::string sha256;
  Status status = Status::crashed;
  std::string message;  ///< one line; empty when passed
  std::string check;    ///< which check refused the values; empty where the status says it all
  std::string target;   ///< "sm_90a"
  std::string harness;  ///< harness_digest() of what judged it

  std::vector<KernelResources> resources;
  std::vector<std::string> libraries;  ///< whose kernels it launches: a wrapper is seen as one
  std::string compile_log;
  std::vector<std::uint64_t> seeds;
  std::optional<ErrorStats> errors;  ///< the worst over all seeds

  Badges badges;            ///< as far as the runs went; earned_badges() counts
  std::string badge_notes;  ///< why a badge was refused, one line
  std::optional<BadgeEvidence> evidence;
  /// Stress cases whose truth is not finite everywhere: nothing was judged on them.
  std::vector<std::string> stress_left_out;

  std::optional<Timing> timing;
  /// The same samples, by clocks out of the candidate's reach: one for each of its processes.
  std::vector<Witness> witnesses;
  Ceilings ceilings;
  std::int64_t ceiling_ns = 0;              ///< of the ceilings: see ceiling_ns()
  std::int64_t speed_of_light_ns = 0;       ///< of the device; 0: no bound, or none was recorded
  std::vector<ReferenceResult> references;  ///< the headline first
  std::int64_t reference_noise_ppm =
      0;  ///< the headline against itself: half width of the 95% interval
  std::vector<std::int64_t> repeated_headline_ns;  ///< its times under the other name
  GpuConditions conditions;

  /// Where the wall time went: (phase, nanoseconds).
  std::vector<std::pair<std::string, std::int64_t>> split_ns;

  Badges earned_badges() const;  ///< none unless it passed
  /// The lower of the median and the witnesses' medians: what has to be plausible. Needs a timing.
  std::int64_t least_median_ns() const;
  const ReferenceResult* headline() const;
};

/// How they stand in JSON.
struct DigestsFormat {
  boost::json::value write(const std::vector<std::vector<std::string>>& digests) const;
  void read(JsonReader reader, std::vector<std::vector<std::string>>& into) const;
};

boost::json::object to_json(const SizeResult& result);
SizeResult size_result_from_json(JsonReader reader);
boost::json::object to_json(const KernelResources& kernel);
boost::json::array to_json(const std::vector<KernelResources>& kernels);
KernelResources resources_from_json(JsonReader reader);
boost::json::object to_json(const Ceilings& ceilings);
Ceilings ceilings_from_json(JsonReader reader);
boost::json::object to_json(const GpuConditions& conditions);
GpuConditions conditions_from_json(JsonReader reader);
boost::json::object to_json(const NoiseRun& run);
NoiseRun noise_run_from_json(JsonReader reader);
boost::json::object to_json(const Evaluation& evaluation);
Result<Evaluation> evaluation_from_json(JsonReader reader);

}  // namespace rekernel
