#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/evaluation/rejection.h"

namespace rekernel {

/// One run as two clocks saw it, in nanoseconds. The events are in the context of the code that
/// ran, which can forge them; the stamps are in the referee's.
struct RunTimes {
  std::int64_t events_ns = 0;    ///< between the events round the plan
  std::int64_t stamps_ns = 0;    ///< from the end of the cache flush to the start of the snapshot
  std::int64_t flush_ns = 0;     ///< of the referee's own kernel that overwrites the cache
  std::int64_t snapshot_ns = 0;  ///< of the referee's own copy of the output
};

/// What known work, run before any code of a candidate was loaded, says of the referee's clock.
struct ClockCalibration {
  /// Of a known piece of work: what it is, and medians over its runs.
  struct Work {
    std::string name;
    RunTimes median;
  };
  std::vector<Work> works;
  /// Handing the GPU over and back: the longest that stamps exceed events, over the works.
  std::int64_t handover_ns = 0;
  /// How far single runs of the work with that handover lie above it: the 90th percentile.
  std::int64_t spread_ns = 0;
  std::int64_t flush_ns = 0;     ///< median over all runs
  std::int64_t snapshot_ns = 0;  ///< the same
};

/// The calibration that runs of known works give; none may be empty.
ClockCalibration calibrate(const std::vector<std::pair<std::string, std::vector<RunTimes>>>& works);

/// What the referee's clock says of a subject's timed runs.
struct Witness {
  ClockCalibration calibration;
  std::int64_t median_ns = 0;  ///< of the stamps, less the handover: beside the events' median
  std::int64_t excess_ns = 0;  ///< 75th percentile of stamps − events − handover over the runs
  std::int64_t tolerance_ns = 0;  ///< what that may be: see check_clock
  std::int64_t flush_ns = 0;      ///< medians during the timed runs
  std::int64_t snapshot_ns = 0;
};

Witness witness_of(const ClockCalibration& calibration, std::span<const RunTimes> runs);

/// `forged_time` where stamps and events disagree: in more than a quarter of the runs, the stamps
/// exceed the events by more than the handover, its spread, and max(2 µs, 1.5% of the stamps'
/// median less the handover). Who lowers a median has to forge half of its samples. Or where the
/// referee's own kernels take longer by more than a fifth than before the candidate was loaded:
/// something of it still runs.
std::optional<Rejection> check_clock(const Witness& witness);

boost::json::object to_json(const Witness& witness);
Witness witness_from_json(JsonReader reader);

}  // namespace rekernel
