#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/records/record.h"
#include "ops/problem.h"

namespace rekernel {

/// What a judge once said of a candidate, from a row, a trajectory or an evaluation made now.
struct Verdict {
  std::string source;  ///< "results/h200/bench.json"
  std::string device;
  std::string measured;  ///< date; empty if none was kept
  Status status = Status::crashed;
  std::string message;
  std::string check;
  Badges badges;
  std::string badge_notes;
  std::int64_t median_ns = 0;  ///< 0: not timed
  std::int64_t ceiling_ns = 0;
  std::int64_t speed_of_light_ns = 0;
  Ceilings ceilings;
  std::string max_error, rms_error, truth_rms;  ///< empty: not measured
  std::string library_max_error, library_rms_error;
  std::string reference;  ///< the headline; empty: none
  std::int64_t reference_ns = 0;
  std::optional<Percent> percent;
  std::vector<SizeResult> other_sizes;  ///< of a candidate in axes
};

Verdict verdict_of(const BenchRow& row, const Bench& bench, const std::string& source);
Verdict verdict_of(const Evaluation& evaluation, const std::string& device,
                   const std::string& source);

/// Every row of `root` for a candidate of this content.
Result<std::vector<Verdict>> recorded_verdicts(const std::filesystem::path& root,
                                               const std::string& problem,
                                               const std::string& sha256);

/// Where a problem lies under a device's roofline, of the rates that a copy and a library's matrix
/// product reach there.
struct Roofline {
  double intensity = 0;  ///< operations for each byte that has to be moved
  double ridge = 0;      ///< the intensity at which both bounds are equal; 0: no matrix bound
  std::int64_t memory_ns = 0;
  std::int64_t matrix_ns = 0;  ///< 0: no matrix unit is involved

  bool bound_by_memory() const { return memory_ns >= matrix_ns; }
};
/// Nothing where no rate was measured.
std::optional<Roofline> roofline(const Problem& problem, const Ceilings& ceilings);

/// Lines for a person, each ending in a line feed. `problem` may be null.
std::string verdict_text(const Verdict& verdict, const Problem* problem);
boost::json::object to_json(const Verdict& verdict, const Problem* problem);

}  // namespace rekernel
