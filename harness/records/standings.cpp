#include "harness/records/standings.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/evaluation/statistics.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

std::string headline_of(const BenchRow& row) {
  const RecordedReference* headline = row.headline();
  if (!headline) return no_cell;
  return percent_text(headline->percent.value) + " ± " +
         printed("%.1f", (headline->percent.high - headline->percent.low) / 2.0);
}

std::string rate(const std::optional<double>& per_second, double unit) {
  return per_second ? printed("%.0f", *per_second / unit) : no_cell;
}

std::string percent_cell(const RecordedReference* headline, double Percent::*part) {
  return headline ? printed("%.1f", headline->percent.*part) : "";
}

/// One end of the interval of the time that a row's samples give, in milliseconds.
std::string end_of_time(const BenchRow& row, std::int64_t MedianInterval::*end) {
  return row.samples_ns.empty() ? "" : exact_milliseconds(time_interval(row).*end);
}

/// The new time divided by the old one, so that what takes twice as long is 100% slower.
std::optional<Percent> share_of_time(const BenchRow& from, const BenchRow& to) {
  if (from.samples_ns.empty() || to.samples_ns.empty()) return std::nullopt;
  return percent_of_reference(to.samples_ns, from.samples_ns);
}

std::string verdict_in(const Standing& place) {
  if (!place.stale.empty()) return "stale: " + place.stale;
  const std::string verdict = verdict_text(*place.row);
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
  const std::optional<Percent> share = share_of_time(from, to);
  if (!share) return std::nullopt;
  const Percent& percent = *share;
  const double half_width = (percent.high - percent.low) / 2.0;
  const std::string interval = " ± " + printed("%.1f", half_width);
  if (percent.low <= 100.0 && percent.high >= 100.0)
    return "no difference seen (" + interval.substr(1) + "%)";
  if (percent.value < 100.0) return percent_text(100.0 - percent.value) + interval + " shorter";
  return percent_text(percent.value - 100.0) + interval + " longer";
}

Table standings_table(const std::vector<Standing>& places) {
  const auto programs = Readers::programs;
  Table table;
  table.legend = badge_legend();
  table.columns = {
      {.heading = "rank", .right_aligned = true},
      {.heading = "kernel"},
      {.heading = "ms", .right_aligned = true, .readers = Readers::people},
      {.heading = "% of reference",
       .right_aligned = true,
       .short_heading = "% of ref.",
       .readers = Readers::people},
      {.heading = "GB/s", .right_aligned = true, .rank = 2, .csv = "gb_per_s"},
      {.heading = "TFLOP/s", .right_aligned = true, .rank = 2, .csv = "tflop_per_s"},
      {.heading = "SM clock MHz", .right_aligned = true, .rank = 4, .csv = "sm_clock_mhz"},
      {.heading = "measured", .rank = 3},
      {.heading = "by", .rank = 1, .csv = "measured_by"},
      {.heading = "verdict", .shortened = shortened_verdict, .good = "passed"},
      {.heading = "time_ms", .readers = programs},
      {.heading = "time_low_ms", .readers = programs},
      {.heading = "time_high_ms", .readers = programs},
      {.heading = "reference", .readers = programs},
      {.heading = "percent_of_reference", .readers = programs},
      {.heading = "percent_of_reference_low", .readers = programs},
      {.heading = "percent_of_reference_high", .readers = programs}};
  for (const Standing& one : places) {
    const BenchRow& row = *one.row;
    const Rates rates = achieved_rates(row);
    const int clock = row.conditions.sm_clock_mhz;
    const RecordedReference* headline = row.headline();
    table.rows.push_back(
        {one.rank > 0 ? std::to_string(one.rank) : no_cell, row.kernel,
         row.median_ns > 0 ? milliseconds(row.median_ns) : no_cell, headline_of(row),
         rate(rates.bytes_per_s, 1e9), rate(rates.operations_per_s, 1e12),
         clock > 0 ? std::to_string(clock) : no_cell, row.measured, row.signer, verdict_in(one),
         row.median_ns > 0 ? exact_milliseconds(row.median_ns) : "",
         end_of_time(row, &MedianInterval::low), end_of_time(row, &MedianInterval::high),
         headline ? headline->id : "", percent_cell(headline, &Percent::value),
         percent_cell(headline, &Percent::low), percent_cell(headline, &Percent::high)});
  }
  return table;
}

Table comparison_table(const Bench& from, const Bench& to) {
  const auto programs = Readers::programs;
  Table table;
  table.columns = {{.heading = "problem"},
                   {.heading = "kernel"},
                   {.heading = "ms in A", .right_aligned = true, .readers = Readers::people},
                   {.heading = "ms in B", .right_aligned = true, .readers = Readers::people},
                   {.heading = "B against A", .wraps = true, .readers = Readers::people},
                   {.heading = "A by", .rank = 1, .csv = "a_measured_by"},
                   {.heading = "B by", .rank = 1, .csv = "b_measured_by"},
                   {.heading = "a_time_ms", .readers = programs},
                   {.heading = "b_time_ms", .readers = programs},
                   {.heading = "b_percent_of_a_time", .readers = programs},
                   {.heading = "b_percent_of_a_time_low", .readers = programs},
                   {.heading = "b_percent_of_a_time_high", .readers = programs},
                   {.heading = "same_source_and_plan", .readers = programs}};
  for (const BenchRow& a : from.rows) {
    for (const BenchRow& b : to.rows) {
      if (a.problem != b.problem || a.kernel != b.kernel) continue;
      const bool same = a.sha256 == b.sha256;
      std::string difference = difference_text(a, b).value_or("no samples to compare");
      if (!same) difference += "; another source or plan";
      const std::optional<Percent> share = share_of_time(a, b);
      const auto part = [&](double Percent::*which) {
        return share ? printed("%.1f", (*share).*which) : std::string();
      };
      table.rows.push_back(
          {a.problem, a.kernel, milliseconds(a.median_ns), milliseconds(b.median_ns), difference,
           a.signer, b.signer, exact_milliseconds(a.median_ns), exact_milliseconds(b.median_ns),
           part(&Percent::value), part(&Percent::low), part(&Percent::high), same ? "1" : "0"});
    }
  }
  return table;
}

}  // namespace rekernel
