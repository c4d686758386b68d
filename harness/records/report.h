#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/statistics.h"
#include "harness/records/published.h"
#include "harness/records/record.h"
#include "harness/records/table.h"
#include "ops/result.h"

namespace rekernel {

/// Replaces what stands between `<!-- name:start -->` and `<!-- name:end -->`. The error names
/// `path` and the markers that are missing.
Result<Ok> replace_section(std::string& page, const std::string& name, const std::string& content,
                           const std::filesystem::path& path);

/// For each row the library's configuration with the shortest time, PyTorch left out; null where
/// the problem's other rows were timed beside more of them (a search times few), since the
/// strongest may be missing. The pointers are into `bench`.
std::vector<const RecordedReference*> strongest_libraries(const Bench& bench);

/// The time at the rates that copies and library products reached in the same run, as a percentage
/// of the kernel's: 103% is better than they. Nothing for a kernel without a time.
std::optional<double> percent_of_ceiling(const BenchRow& row);
/// The least time that the device needs, as a percentage of the kernel's. Nothing where there is no
/// bound.
std::optional<double> percent_of_speed_of_light(const BenchRow& row);

/// What the problem asks for, over the kernel's time; nothing without a time.
struct Rates {
  std::optional<double> bytes_per_s;       ///< each input read once, the output written once
  std::optional<double> operations_per_s;  ///< of the definition
};
Rates achieved_rates(const BenchRow& row);

/// "passed: strict, robust"
std::string verdict_text(const BenchRow& row);

/// "right at 9: 0.0123 ms at columns 5000, rows 300; …": where a candidate in axes was judged
/// besides its problem's own sizes; empty for others.
std::string other_sizes_text(const std::vector<SizeResult>& results);

/// An interval that covers the kernel's median time in at least 95% of all measurements. The row
/// must have samples.
MedianInterval time_interval(const BenchRow& row);

/// Whether a row is to be shown.
using RowFilter = std::function<bool(const BenchRow&)>;

/// `page`: what the project's pages show. `all`: rates and clocks as well, and the columns of CSV.
enum class BenchColumns { page, all };

/// "% of reference": every kernel beside its headline reference, the strongest library
/// configuration, PyTorch, the published figures and both bounds.
/// `takes`: which rows are shown; null: all. What is strongest is found among all.
Table bench_table(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                  BenchColumns columns = BenchColumns::page, const RowFilter& takes = {});

/// What the rows' verdicts and references have to say: a line each.
std::vector<std::string> bench_remarks(const Bench& bench);

/// One line on what was measured, where and when: device, ceilings, library versions, dates.
std::string bench_caption(const Bench& bench);

/// "0.518432" from nanoseconds: nothing is rounded.
std::string exact_milliseconds(std::int64_t nanoseconds);
/// "0.518" from nanoseconds, in milliseconds with three significant digits or more.
std::string milliseconds(std::int64_t nanoseconds);
/// "179.9%"
std::string percent_text(double percent);

}  // namespace rekernel
