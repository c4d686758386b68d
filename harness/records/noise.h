#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/records/report.h"
#include "ops/result.h"

namespace rekernel {

/// One piece of work under two names by the protocol of an evaluation, many times over: an A/A
/// experiment. Every true ratio is 1, so that what the intervals say can be judged.
struct NoiseRow {
  std::string problem;
  std::string subject;   ///< a reference's id or a kernel's name
  std::string sha256;    ///< of the kernel; empty for a reference
  std::string details;   ///< the reference's engine or algorithm
  std::string measured;  ///< date, YYYY-MM-DD
  GpuConditions conditions;
  int starts = 1;  ///< pairs of processes that the runs are spread over, an evaluation having one
  std::vector<NoiseRun> runs;
};

/// What `noise --json` prints and results/<gpu>/noise.json holds: raw samples, so that the interval
/// can be judged again when the way to make it changes.
struct NoiseRecord {
  std::string device_name;
  std::string sm;
  std::map<std::string, std::string> toolchain;  ///< component → version
  std::vector<NoiseRow> rows;
};

struct NoiseSummary {
  int runs = 0;
  int samples = 0;                ///< of each side in the shortest run
  int containing_one = 0;         ///< runs whose interval of the ratio contains 1
  double median_half_width = 0;   ///< of the interval, in percent
  double largest_half_width = 0;  ///< the same
  std::int64_t median_ns = 0;     ///< of all samples

  /// At least 95% of the intervals contain 1, and none is wider than ±1%.
  bool holds() const;
};

/// From the raw samples, by the function that makes the interval of an evaluation.
NoiseSummary summarise(const NoiseRow& row);

boost::json::object to_json(const NoiseRecord& record);
Result<NoiseRecord> noise_from_json(const boost::json::value& json, const std::string& where);
Result<NoiseRecord> load_noise(const std::filesystem::path& path);

/// Replaces the rows of `into` that `from` measured again, adds those that are new, keeps the rest.
void merge(NoiseRecord& into, const NoiseRecord& from);
/// Merges into results/<gpu>/noise.json and returns that path.
Result<std::filesystem::path> record_noise(const std::filesystem::path& root,
                                           const NoiseRecord& measured);
/// Every results/*/noise.json, sorted.
std::vector<std::filesystem::path> recorded_noises(const std::filesystem::path& root);

/// A line for each piece of work.
Table noise_table(const NoiseRecord& record);
/// harness/TIMING.md with the tables of all records between its markers.
Result<std::string> timing_page(const std::filesystem::path& root);

}  // namespace rekernel
