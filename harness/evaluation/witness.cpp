#include "harness/evaluation/witness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "harness/base/json_fields.h"
#include "harness/base/quantile.h"

namespace rekernel {

namespace {

constexpr std::int64_t least_own_tolerance_ns = 2000;
constexpr double tolerance_share = 0.015;
/// The handover's level moves between calibration and runs, in all processes alike: by up to 6 us
/// in 25 evaluations of honest kernels on an H100, while a calibration by itself can be as steady
/// as 2 us.
constexpr std::int64_t least_tolerance_ns = 8000;
constexpr double forgeable_share = 0.25;
/// The referee's own kernels: much less than a change of contexts costs, there and back. What a
/// candidate leaves in caches of addresses slows those that touch its memory by some tens of
/// microseconds.
constexpr double own_kernels_slower = 1.02;
/// Making inputs is arithmetic, which takes longer at the lower clock that a candidate of much
/// power leaves: 8% after a BF16 product that ran for 20 ms at a time.
constexpr double arithmetic_slower = 1.12;
constexpr std::int64_t least_own_kernels_slower_ns = 30000;
constexpr std::int64_t own_kernels_share_of_handover = 4;

template <class Value>
std::int64_t quantile_of(std::span<const RunTimes> runs, double fraction, Value value) {
  std::vector<std::int64_t> values;
  for (const RunTimes& run : runs) values.push_back(value(run));
  return std::llround(quantile(values, fraction));
}

std::int64_t excess_of(const RunTimes& run) { return run.stamps_ns - run.events_ns; }

RunTimes quantiles_of(std::span<const RunTimes> runs, double fraction) {
  const auto value = [&](std::int64_t RunTimes::*field) {
    return quantile_of(runs, fraction, [&](const RunTimes& run) { return run.*field; });
  };
  return {value(&RunTimes::events_ns), value(&RunTimes::stamps_ns), value(&RunTimes::prepare_ns),
          value(&RunTimes::flush_ns), value(&RunTimes::snapshot_ns)};
}

/// Without what is not the referee's.
RunTimes own_kernels(RunTimes times) {
  times.events_ns = times.stamps_ns = 0;
  return times;
}

bool is_slower(std::int64_t now_ns, std::int64_t before_ns, double share, std::int64_t allowed_ns) {
  return static_cast<double>(now_ns) >
         share * static_cast<double>(before_ns) + static_cast<double>(allowed_ns);
}

std::string microseconds(std::int64_t nanoseconds) {
  return std::to_string(nanoseconds / 1000) + "." +
         std::to_string(std::abs(nanoseconds) / 100 % 10) + " us";
}

namespace witness_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

constexpr Whole nanoseconds{-std::numeric_limits<std::int64_t>::max()};

constexpr std::tuple times_fields{field("events_ns", &RunTimes::events_ns, nanoseconds),
                                  field("stamps_ns", &RunTimes::stamps_ns, nanoseconds),
                                  field("prepare_ns", &RunTimes::prepare_ns, nanoseconds),
                                  field("flush_ns", &RunTimes::flush_ns, nanoseconds),
                                  field("snapshot_ns", &RunTimes::snapshot_ns, nanoseconds)};

constexpr std::tuple work_fields{
    field("name", &ClockCalibration::Work::name, Text{64}),
    field("median", &ClockCalibration::Work::median, Nested{times_fields})};

constexpr std::tuple calibration_fields{
    field("works", &ClockCalibration::works, List{Nested{work_fields}}),
    field("handover_ns", &ClockCalibration::handover_ns, nanoseconds),
    field("shortest_handover_ns", &ClockCalibration::shortest_handover_ns, nanoseconds),
    field("spread_ns", &ClockCalibration::spread_ns, nanoseconds),
    field("own", &ClockCalibration::own, Nested{times_fields})};

constexpr std::tuple witness_fields{
    field("calibration", &Witness::calibration, Nested{calibration_fields}),
    field("median_ns", &Witness::median_ns, nanoseconds),
    field("excess_ns", &Witness::excess_ns, nanoseconds),
    field("shortfall_ns", &Witness::shortfall_ns, nanoseconds),
    field("tolerance_ns", &Witness::tolerance_ns, nanoseconds),
    field("own", &Witness::own, Nested{times_fields})};

}  // namespace witness_json

}  // namespace

bool is_steady(std::span<const CalibrationRound> rounds) {
  constexpr std::int64_t at_rest_ns = 1000;
  if (rounds.size() < calibration_rounds) return false;
  const auto mean_excess = [](std::span<const CalibrationRound> some) {
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (const CalibrationRound& round : some) {
      for (const RunTimes& run : round) sum += excess_of(run);
      count += std::ssize(round);
    }
    return sum / std::max<std::int64_t>(count, 1);
  };
  constexpr std::size_t half = calibration_rounds / 2;
  const std::span<const CalibrationRound> last = rounds.last(calibration_rounds);
  return std::abs(mean_excess(last.first(half)) - mean_excess(last.last(half))) <= at_rest_ns;
}

ClockCalibration calibrate(
    const std::vector<std::pair<std::string, std::vector<RunTimes>>>& works) {
  constexpr double most_runs = 0.9;
  ClockCalibration calibration;
  std::vector<RunTimes> all;
  for (const auto& [name, runs] : works) {
    calibration.works.push_back({name, quantiles_of(runs, 0.5)});
    const std::int64_t handover = quantile_of(runs, 0.5, excess_of);
    if (calibration.works.size() == 1 || handover > calibration.handover_ns) {
      calibration.handover_ns = handover;
      calibration.spread_ns = quantile_of(runs, most_runs, excess_of) - handover;
    }
    if (calibration.works.size() == 1 || handover < calibration.shortest_handover_ns) {
      calibration.shortest_handover_ns = handover;
    }
    all.insert(all.end(), runs.begin(), runs.end());
  }
  calibration.own = own_kernels(quantiles_of(all, 0.5));
  return calibration;
}

Witness witness_of(const ClockCalibration& calibration, std::span<const RunTimes> runs) {
  constexpr double upper = 1.0 - forgeable_share;
  const RunTimes median = quantiles_of(runs, 0.5);
  Witness witness;
  witness.calibration = calibration;
  witness.median_ns = median.stamps_ns - calibration.handover_ns;
  witness.excess_ns = quantile_of(runs, upper, excess_of) - calibration.handover_ns;
  witness.shortfall_ns = calibration.handover_ns - quantile_of(runs, forgeable_share, excess_of);
  const double share =
      tolerance_share * static_cast<double>(std::max<std::int64_t>(witness.median_ns, 0));
  const std::int64_t uncertainty =
      calibration.handover_ns - calibration.shortest_handover_ns + calibration.spread_ns +
      std::max<std::int64_t>(least_own_tolerance_ns, std::llround(share));
  witness.tolerance_ns = std::max(least_tolerance_ns, uncertainty);
  witness.own = own_kernels(quantiles_of(runs, upper));
  return witness;
}

namespace {

std::optional<Rejection> check_own_kernels(const RunTimes& now, const ClockCalibration& calibration,
                                           bool same_memory) {
  const RunTimes& before = calibration.own;
  const std::int64_t of_its_memory = std::max(
      least_own_kernels_slower_ns, calibration.handover_ns / own_kernels_share_of_handover);
  struct Kernel {
    const char* what;
    std::int64_t RunTimes::*field;
    double share;
    std::int64_t allowed_ns;
  };
  std::vector<Kernel> kernels = {
      {"cache flush", &RunTimes::flush_ns, own_kernels_slower, least_own_kernels_slower_ns}};
  if (same_memory) {
    kernels.push_back({"preparation", &RunTimes::prepare_ns, arithmetic_slower, of_its_memory});
    kernels.push_back({"snapshot", &RunTimes::snapshot_ns, own_kernels_slower, of_its_memory});
  }
  for (const auto& [what, field, share, allowed_ns] : kernels) {
    if (!is_slower(now.*field, before.*field, share, allowed_ns)) continue;
    return Rejection{Status::forged_time, std::string("the referee's own ") + what + " takes " +
                                              microseconds(now.*field) + ", and took " +
                                              microseconds(before.*field) +
                                              " before: something of the candidate still runs"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rejection> check_clock(const Witness& witness) {
  if (witness.excess_ns > witness.tolerance_ns) {
    return Rejection{Status::forged_time,
                     "the GPU was busy with it for " + microseconds(witness.median_ns) +
                         ", as clocks out of its reach tell: " + microseconds(witness.excess_ns) +
                         " longer than its own events say, expected at most " +
                         microseconds(witness.tolerance_ns)};
  }
  if (witness.shortfall_ns > witness.tolerance_ns) {
    return Rejection{Status::forged_time,
                     "its own events say " + microseconds(witness.shortfall_ns) +
                         " more than clocks out of its reach, expected at most " +
                         microseconds(witness.tolerance_ns) +
                         ": it does not work when it says that it does"};
  }
  return check_own_kernels(witness.own, witness.calibration, true);
}

std::optional<Rejection> check_flush_beside(const ClockCalibration& calibration,
                                            std::span<const RunTimes> library_runs) {
  return check_own_kernels(quantiles_of(library_runs, 1.0 - forgeable_share), calibration, false);
}

std::optional<Rejection> check_reference(const std::string& id, std::int64_t before_ns,
                                         std::int64_t beside_ns) {
  constexpr double slower = 1.1;
  constexpr std::int64_t slower_ns = 5000;
  if (static_cast<double>(beside_ns) <= slower * static_cast<double>(before_ns) + slower_ns) {
    return std::nullopt;
  }
  return Rejection{Status::forged_time, id + " takes " + microseconds(beside_ns) +
                                            " beside the candidate, and took " +
                                            microseconds(before_ns) + " before: it is slowed down"};
}

boost::json::object to_json(const Witness& witness) {
  return object_of(witness, witness_json::witness_fields);
}

Witness witness_from_json(JsonReader reader) {
  return read_object<Witness>(std::move(reader), witness_json::witness_fields);
}

}  // namespace rekernel
