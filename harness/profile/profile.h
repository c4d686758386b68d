#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/profile/launch_metrics.h"
#include "ops/problem.h"

namespace rekernel {

/// A machine instruction at which warps were often seen.
struct HotInstruction {
  std::string text;   ///< "LDG.E.128 R4, [R2.64]"
  double share = 0;   ///< of the launch's samples
  std::string stall;  ///< in words, for most of its samples; may be empty
  int line = 0;       ///< of kernel.cu; 0: not known
  std::string source;
};

/// What a profiler saw of one launch. Shares are percent of what the chip does at most; what it did
/// not count is not there.
struct LaunchProfile {
  std::string kernel;
  std::string grid;
  std::string block;
  std::int64_t duration_ns = 0;
  std::optional<std::int64_t> dram_read_bytes, dram_written_bytes;
  std::optional<std::int64_t> l2_read_bytes, l2_written_bytes;
  std::optional<double> dram_share, l2_share, l1_share, sm_share, matrix_share, issue_share;
  std::optional<double> occupancy;             ///< percent of the warps that fit, over its time
  std::optional<double> possible_occupancy;    ///< as registers and shared memory allow
  std::optional<std::int64_t> registers;       ///< a thread
  std::optional<std::int64_t> shared_bytes;    ///< a block, static and dynamic
  std::optional<std::int64_t> local_accesses;  ///< instructions, of warps; spills are among them
  std::optional<std::int64_t> bank_conflicts;
  std::optional<double> sectors_per_load, sectors_per_store;  ///< of global memory, 32 bytes each
  std::optional<double> waves;
  std::vector<std::pair<std::string, double>> stalls;  ///< (words, percent of all), the most first
  std::vector<HotInstruction> hottest;                 ///< the hottest first
};

/// What a profiler saw of a candidate: its launches in their order.
struct Profile {
  std::string problem;
  std::string kernel;
  std::string sha256;
  std::string device;
  std::string tool;
  std::int64_t least_bytes = 0;  ///< that the definition's inputs and outputs have
  std::vector<LaunchProfile> launches;

  std::int64_t duration_ns() const;
  std::optional<std::int64_t> dram_bytes() const;  ///< of all launches, if all were counted
  /// A share of all launches together, weighted by their times.
  std::optional<double> together(std::optional<double> LaunchProfile::*share) const;
};

/// Takes what the text says from what was counted.
LaunchProfile launch_profile(const LaunchMetrics& metrics);

/// The `most` hottest of a launch's instructions.
std::vector<HotInstruction> hottest_of(const std::vector<SampledInstruction>& instructions,
                                       std::size_t most);

/// For a prompt or a person: at most `most_bytes`; the longest of several forms that fits.
std::string profile_text(const Profile& profile, std::size_t most_bytes);
boost::json::object to_json(const Profile& profile);

}  // namespace rekernel
