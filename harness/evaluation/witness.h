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
  std::int64_t prepare_ns = 0;   ///< of the referee's own kernels that make inputs and poison
  std::int64_t flush_ns = 0;     ///< of the one that overwrites the cache, right after them
  std::int64_t snapshot_ns = 0;  ///< of the one that copies the output
};

/// What known work, run before any code of a candidate was loaded, says of the referee's clock.
struct ClockCalibration {
  /// A known piece of work, and medians over its runs.
  struct Work {
    std::string name;
    RunTimes median;
  };
  std::vector<Work> works;
  /// Handing the GPU over and back: the longest that stamps exceed events, over the works.
  std::int64_t handover_ns = 0;
  std::int64_t shortest_handover_ns = 0;  ///< the shortest
  /// How far single runs of the work with that handover lie above it: the 90th percentile.
  std::int64_t spread_ns = 0;
  RunTimes own;  ///< medians of the referee's own kernels over all runs
};

/// One run each of all known works, in every process.
using CalibrationRound = std::vector<RunTimes>;

/// Rounds that a calibration is made of.
inline constexpr std::size_t calibration_rounds = 6;

/// Whether the handover is at rest: its mean over the last three of these rounds is within 1 µs of
/// that over the three before. After heavy work, such as a library's choice of an engine, the GPU's
/// clock is low for some tenths of a second, and a handover takes up to 15 µs longer.
bool is_steady(std::span<const CalibrationRound> rounds);

/// The calibration that runs of known works give; none may be empty.
ClockCalibration calibrate(const std::vector<std::pair<std::string, std::vector<RunTimes>>>& works);

/// What the referee's clock says of a subject's timed runs.
struct Witness {
  ClockCalibration calibration;
  std::int64_t median_ns = 0;  ///< of the stamps, less the handover: beside the events' median
  std::int64_t excess_ns = 0;  ///< 75th percentile of stamps − events − handover over the runs
  std::int64_t shortfall_ns = 0;  ///< 75th percentile of events + handover − stamps
  std::int64_t tolerance_ns = 0;  ///< what the excess may be: see check_clock
  RunTimes own;                   ///< 75th percentiles of the referee's own kernels over the runs
};

Witness witness_of(const ClockCalibration& calibration, std::span<const RunTimes> runs);

/// `forged_time` where stamps and events disagree: in more than a quarter of the runs, the stamps
/// exceed the events by more than the longest handover and the tolerance, or stay below what the
/// longest handover asks for by more than the tolerance. Who lowers a median has to forge half of
/// its samples; who works where the stamps do not look has to give the events a time that can be
/// believed. The tolerance is what the handovers of the known works differ (it depends on what
/// runs), the spread of the longest, and max(2 µs, 1.5% of the stamps' median less the handover);
/// at least 8 µs. Or where the referee's own kernels take longer than before the candidate was
/// loaded: something of it still runs.
std::optional<Rejection> check_clock(const Witness& witness);

/// Checks a library's runs beside the candidate's: only the cache flush, since other memory takes
/// another time to be prepared and copied.
std::optional<Rejection> check_flush_beside(const ClockCalibration& calibration,
                                            std::span<const RunTimes> library_runs);

/// `forged_time` where a library takes more than a tenth longer, and 5 µs, beside the candidate
/// than it took before the candidate's code was loaded: a slower reference is a better percentage.
/// Both are medians in nanoseconds; heat and power move them by a few percent.
std::optional<Rejection> check_reference(const std::string& id, std::int64_t before_ns,
                                         std::int64_t beside_ns);

boost::json::object to_json(const Witness& witness);
Witness witness_from_json(JsonReader reader);

}  // namespace rekernel
