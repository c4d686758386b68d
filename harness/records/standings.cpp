#include "harness/records/standings.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/evaluation/statistics.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

const char* const none = "–";

std::string verdict_of(const BenchRow& row) {
  std::string text = to_string(row.status);
  if (!row.badges.empty()) text += ": " + joined(row.badges.names());
  return text;
}

std::string headline_of(const BenchRow& row) {
  const RecordedReference* headline = row.headline();
  if (!headline) return none;
  return percent_text(headline->percent.value) + " ± " +
         printed("%.1f", (headline->percent.high - headline->percent.low) / 2.0);
}

std::string rate(const std::optional<double>& per_second, double unit) {
  return per_second ? printed("%.0f", *per_second / unit) : none;
}

std::string verdict_in(const Standing& place) {
  if (!place.stale.empty()) return "stale: " + place.stale;
  const std::string verdict = verdict_of(*place.row);
  return place.unranked.empty() ? verdict : "unranked: " + place.unranked + "; " + verdict;
}

}  // namespace

std::vector<Standing> standings(const Bench& bench, const std::string& problem,
                                const Staleness& staleness) {
  std::vector<Standing> places;
  for (const BenchRow& row : bench.rows) {
    if (row.problem == problem) places.push_back({&row, 0, staleness ? staleness(row) : ""});
  }
  // Its bounds are those of its own word.
  if (!find_known_device(bench.device_name)) {
    for (Standing& one : places) one.unranked = std::string("the device is ") + not_a_known_device;
  }
  const auto counts = [](const Standing& one) {
    return one.row->status == Status::passed && one.row->median_ns > 0 && one.stale.empty() &&
           one.unranked.empty();
  };
  std::stable_sort(places.begin(), places.end(), [&](const Standing& a, const Standing& b) {
    if (counts(a) != counts(b)) return counts(a);
    return a.row->median_ns < b.row->median_ns;
  });
  int rank = 0;
  for (Standing& one : places) {
    if (counts(one)) one.rank = ++rank;
  }
  return places;
}

std::optional<std::string> difference_text(const BenchRow& from, const BenchRow& to) {
  if (from.samples_ns.empty() || to.samples_ns.empty()) return std::nullopt;
  // The new time divided by the old one, so that what takes twice as long is 100% slower.
  const Percent percent = percent_of_reference(to.samples_ns, from.samples_ns);
  const double half_width = (percent.high - percent.low) / 2.0;
  const std::string interval = " ± " + printed("%.1f", half_width);
  if (percent.low <= 100.0 && percent.high >= 100.0)
    return "no difference seen (" + interval.substr(1) + "%)";
  if (percent.value < 100.0) return percent_text(100.0 - percent.value) + interval + " shorter";
  return percent_text(percent.value - 100.0) + interval + " longer";
}

Table standings_table(const std::vector<Standing>& places) {
  Table table;
  table.columns = {
      {.heading = "rank", .right_aligned = true},
      {.heading = "kernel"},
      {.heading = "ms", .right_aligned = true},
      {.heading = "% of reference", .right_aligned = true, .short_heading = "% of ref."},
      {.heading = "GB/s", .right_aligned = true, .rank = 2},
      {.heading = "TFLOP/s", .right_aligned = true, .rank = 2},
      {.heading = "SM clock MHz", .right_aligned = true, .rank = 4},
      {.heading = "measured", .rank = 3},
      {.heading = "by", .rank = 1},
      {.heading = "verdict", .cut = true, .good = "passed"}};
  for (const Standing& one : places) {
    const BenchRow& row = *one.row;
    const Rates rates = achieved_rates(row);
    const int clock = row.conditions.sm_clock_mhz;
    table.rows.push_back({one.rank > 0 ? std::to_string(one.rank) : none, row.kernel,
                          row.median_ns > 0 ? milliseconds(row.median_ns) : none, headline_of(row),
                          rate(rates.bytes_per_s, 1e9), rate(rates.operations_per_s, 1e12),
                          clock > 0 ? std::to_string(clock) : none, row.measured, row.signer,
                          verdict_in(one)});
  }
  return table;
}

Table comparison_table(const Bench& from, const Bench& to) {
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "kernel"},
                   {.heading = "ms in A", .right_aligned = true},
                   {.heading = "ms in B", .right_aligned = true},
                   {.heading = "B against A", .wraps = true},
                   {.heading = "A by", .rank = 1},
                   {.heading = "B by", .rank = 1}};
  for (const BenchRow& a : from.rows) {
    for (const BenchRow& b : to.rows) {
      if (a.problem != b.problem || a.kernel != b.kernel) continue;
      std::string difference = difference_text(a, b).value_or("no samples to compare");
      if (a.sha256 != b.sha256) difference += "; another source or plan";
      table.rows.push_back({a.problem, a.kernel, milliseconds(a.median_ns),
                            milliseconds(b.median_ns), difference, a.signer, b.signer});
    }
  }
  return table;
}

}  // namespace rekernel
