#include "harness/evaluation/witness.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>

#include "harness/evaluation/statistics.h"

namespace rekernel {

namespace {

constexpr std::int64_t least_tolerance_ns = 2000;
constexpr double tolerance_share = 0.015;
constexpr double forgeable_share = 0.25;
/// The referee's own kernels: under company of another kernel they take half as long again or more.
constexpr double own_kernels_slower = 1.2;
constexpr std::int64_t own_kernels_slower_ns = 10000;

template <class Value>
std::int64_t quantile_of(std::span<const RunTimes> runs, double fraction, Value value) {
  std::vector<std::int64_t> values;
  for (const RunTimes& run : runs) values.push_back(value(run));
  return std::llround(quantile(values, fraction));
}

std::int64_t excess_of(const RunTimes& run) { return run.stamps_ns - run.events_ns; }

RunTimes median_of(std::span<const RunTimes> runs) {
  const auto median = [&](std::int64_t RunTimes::*field) {
    return quantile_of(runs, 0.5, [&](const RunTimes& run) { return run.*field; });
  };
  return {median(&RunTimes::events_ns), median(&RunTimes::stamps_ns), median(&RunTimes::flush_ns),
          median(&RunTimes::snapshot_ns)};
}

bool is_slower(std::int64_t now_ns, std::int64_t before_ns) {
  return now_ns > before_ns + own_kernels_slower_ns &&
         static_cast<double>(now_ns) > own_kernels_slower * static_cast<double>(before_ns);
}

std::string microseconds(std::int64_t nanoseconds) {
  return std::to_string(nanoseconds / 1000) + "." +
         std::to_string(std::abs(nanoseconds) / 100 % 10) + " us";
}

boost::json::object to_json(const RunTimes& times) {
  return {{"events_ns", times.events_ns},
          {"stamps_ns", times.stamps_ns},
          {"flush_ns", times.flush_ns},
          {"snapshot_ns", times.snapshot_ns}};
}

std::int64_t read_ns(JsonReader reader) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return reader.integer(-most, most);
}

RunTimes read_times(JsonReader reader) {
  RunTimes times;
  times.events_ns = read_ns(reader.required("events_ns"));
  times.stamps_ns = read_ns(reader.required("stamps_ns"));
  times.flush_ns = read_ns(reader.required("flush_ns"));
  times.snapshot_ns = read_ns(reader.required("snapshot_ns"));
  reader.no_other_keys();
  return times;
}

boost::json::object to_json(const ClockCalibration& calibration) {
  boost::json::array works;
  for (const ClockCalibration::Work& work : calibration.works) {
    works.push_back(boost::json::object{{"name", work.name}, {"median", to_json(work.median)}});
  }
  return {{"works", std::move(works)},
          {"handover_ns", calibration.handover_ns},
          {"spread_ns", calibration.spread_ns},
          {"flush_ns", calibration.flush_ns},
          {"snapshot_ns", calibration.snapshot_ns}};
}

ClockCalibration read_calibration(JsonReader reader) {
  ClockCalibration calibration;
  for (JsonReader& work : reader.required("works").array()) {
    std::string name = work.required("name").string(64);
    calibration.works.push_back({std::move(name), read_times(work.required("median"))});
    work.no_other_keys();
  }
  calibration.handover_ns = read_ns(reader.required("handover_ns"));
  calibration.spread_ns = read_ns(reader.required("spread_ns"));
  calibration.flush_ns = read_ns(reader.required("flush_ns"));
  calibration.snapshot_ns = read_ns(reader.required("snapshot_ns"));
  reader.no_other_keys();
  return calibration;
}

}  // namespace

ClockCalibration calibrate(
    const std::vector<std::pair<std::string, std::vector<RunTimes>>>& works) {
  constexpr double most_runs = 0.9;
  ClockCalibration calibration;
  std::vector<RunTimes> all;
  for (const auto& [name, runs] : works) {
    calibration.works.push_back({name, median_of(runs)});
    const std::int64_t handover = quantile_of(runs, 0.5, excess_of);
    if (calibration.works.size() == 1 || handover > calibration.handover_ns) {
      calibration.handover_ns = handover;
      calibration.spread_ns = quantile_of(runs, most_runs, excess_of) - handover;
    }
    all.insert(all.end(), runs.begin(), runs.end());
  }
  const RunTimes median = median_of(all);
  calibration.flush_ns = median.flush_ns;
  calibration.snapshot_ns = median.snapshot_ns;
  return calibration;
}

Witness witness_of(const ClockCalibration& calibration, std::span<const RunTimes> runs) {
  const RunTimes median = median_of(runs);
  Witness witness;
  witness.calibration = calibration;
  witness.median_ns = median.stamps_ns - calibration.handover_ns;
  witness.excess_ns = quantile_of(runs, 1.0 - forgeable_share, excess_of) - calibration.handover_ns;
  const double share =
      tolerance_share * static_cast<double>(std::max<std::int64_t>(witness.median_ns, 0));
  witness.tolerance_ns =
      calibration.spread_ns + std::max<std::int64_t>(least_tolerance_ns, std::llround(share));
  witness.flush_ns = median.flush_ns;
  witness.snapshot_ns = median.snapshot_ns;
  return witness;
}

std::optional<Rejection> check_clock(const Witness& witness) {
  if (witness.excess_ns > witness.tolerance_ns) {
    return Rejection{Status::forged_time,
                     "the GPU was busy with it for " + microseconds(witness.median_ns) +
                         ", as clocks out of its reach tell: " + microseconds(witness.excess_ns) +
                         " longer than its own events say, expected at most " +
                         microseconds(witness.tolerance_ns)};
  }
  const ClockCalibration& before = witness.calibration;
  for (const auto& [what, now_ns, before_ns] :
       {std::tuple("cache flush", witness.flush_ns, before.flush_ns),
        std::tuple("snapshot", witness.snapshot_ns, before.snapshot_ns)}) {
    if (!is_slower(now_ns, before_ns)) continue;
    return Rejection{Status::forged_time, std::string("the referee's own ") + what + " takes " +
                                              microseconds(now_ns) + ", and took " +
                                              microseconds(before_ns) +
                                              " before: something of the candidate still runs"};
  }
  return std::nullopt;
}

boost::json::object to_json(const Witness& witness) {
  return {{"calibration", to_json(witness.calibration)},
          {"median_ns", witness.median_ns},
          {"excess_ns", witness.excess_ns},
          {"tolerance_ns", witness.tolerance_ns},
          {"flush_ns", witness.flush_ns},
          {"snapshot_ns", witness.snapshot_ns}};
}

Witness witness_from_json(JsonReader reader) {
  Witness witness;
  witness.calibration = read_calibration(reader.required("calibration"));
  witness.median_ns = read_ns(reader.required("median_ns"));
  witness.excess_ns = read_ns(reader.required("excess_ns"));
  witness.tolerance_ns = read_ns(reader.required("tolerance_ns"));
  witness.flush_ns = read_ns(reader.required("flush_ns"));
  witness.snapshot_ns = read_ns(reader.required("snapshot_ns"));
  reader.no_other_keys();
  return witness;
}

}  // namespace rekernel
