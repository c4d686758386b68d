// The table of a bench: for people "57.4% (cublas_tf32 0.3490)", for programs one number a cell.

#include <functional>

#include "harness/base/text.h"
#include "harness/evaluation/statistics.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

/// A row with what the columns ask of it.
struct RowView {
  const Bench& bench;
  const BenchRow& row;
  const RecordedReference* headline;
  const RecordedReference* strongest;
  const RecordedReference* pytorch;
  const RecordedReference* compiled;
  const PublishedFigures* published;
  Rates rates;
};

/// A column, and how its cells are made.
struct Field {
  Table::Column column;
  std::function<std::string(const RowView&)> cell;
};

std::string named_percent(const RecordedReference* reference) {
  if (!reference) return no_cell;
  return percent_text(reference->percent.value) + " (" + reference->id + " " +
         milliseconds(reference->median_ns) + ")";
}

std::string plain_percent(const RecordedReference* reference) {
  return reference ? percent_text(reference->percent.value) + " (" +
                         milliseconds(reference->median_ns) + ")"
                   : no_cell;
}

std::string headline_percent(const RecordedReference* reference) {
  if (!reference) return no_cell;
  const double half_width = (reference->percent.high - reference->percent.low) / 2.0;
  return percent_text(reference->percent.value) + " ± " + printed("%.1f", half_width);
}

std::string share(const std::optional<double>& percent) {
  return percent ? percent_text(*percent) : no_cell;
}

/// Bytes or operations of the problem in a second, in units of `unit`.
std::string rate_text(const std::optional<double>& per_second, double unit) {
  return per_second ? printed("%.0f", *per_second / unit) : no_cell;
}

std::string before_parenthesis(const std::string& cell) { return cell.substr(0, cell.find(" (")); }

std::string time_of(const RecordedReference* reference) {
  return reference ? exact_milliseconds(reference->median_ns) : "";
}

std::string percent_of(const RecordedReference* reference) {
  return reference ? printed("%.1f", reference->percent.value) : "";
}

std::string id_of(const RecordedReference* reference) {
  return reference ? reference->id : no_cell;
}

std::string number_or_blank(const std::optional<double>& value, const char* format) {
  return value ? printed(format, *value) : "";
}

std::optional<double> published_percent(const RowView& view) {
  return view.published ? view.published->percent_of_pytorch_eager : std::nullopt;
}

/// What the project's pages show, and terminals as far as there is room.
std::vector<Field> page_fields() {
  const auto people = Readers::people;
  return {
      {{.heading = "problem"}, [](const auto& view) { return view.row.problem; }},
      {{.heading = "kernel"}, [](const auto& view) { return view.row.kernel; }},
      {{.heading = "ms", .right_aligned = true, .readers = people},
       [](const auto& view) {
         return view.row.median_ns > 0 ? milliseconds(view.row.median_ns) : no_cell;
       }},
      {{.heading = "reference", .rank = 7}, [](const auto& view) { return id_of(view.headline); }},
      {{.heading = "ms", .right_aligned = true, .rank = 7, .readers = people},
       [](const auto& view) {
         return view.headline ? milliseconds(view.headline->median_ns) : no_cell;
       }},
      {{.heading = "% of reference",
        .right_aligned = true,
        .short_heading = "% of ref.",
        .readers = people},
       [](const auto& view) { return headline_percent(view.headline); }},
      {{.heading = "% of strongest library",
        .right_aligned = true,
        .rank = 1,
        .shortened = before_parenthesis,
        .short_heading = "% strongest",
        .readers = people},
       [](const auto& view) { return named_percent(view.strongest); }},
      {{.heading = "% of PyTorch",
        .right_aligned = true,
        .rank = 4,
        .shortened = before_parenthesis,
        .short_heading = "% PyTorch",
        .readers = people},
       [](const auto& view) { return plain_percent(view.pytorch); }},
      {{.heading = "% of torch.compile",
        .right_aligned = true,
        .rank = 5,
        .shortened = before_parenthesis,
        .short_heading = "% compile",
        .readers = people},
       [](const auto& view) { return plain_percent(view.compiled); }},
      {{.heading = "published %",
        .right_aligned = true,
        .rank = 6,
        .short_heading = "published",
        .readers = people},
       [](const auto& view) { return share(published_percent(view)); }},
      {{.heading = "% of ceiling",
        .right_aligned = true,
        .rank = 2,
        .short_heading = "% ceiling",
        .readers = people},
       [](const auto& view) { return share(percent_of_ceiling(view.row)); }},
      {{.heading = "% of speed of light", .right_aligned = true, .rank = 5, .readers = people},
       [](const auto& view) { return share(percent_of_speed_of_light(view.row)); }},
      {{.heading = "verdict",
        .shortened = shortened_verdict,
        .good = to_string(Status::passed),
        .readers = people},
       [](const auto& view) { return verdict_text(view.row); }}};
}

/// What text for terminals has besides: a page in the project would be too wide with it.
std::vector<Field> more_fields() {
  const auto people = Readers::people;
  return {{{.heading = "GB/s", .right_aligned = true, .rank = 8, .csv = "gb_per_s"},
           [](const auto& view) { return rate_text(view.rates.bytes_per_s, 1e9); }},
          {{.heading = "TFLOP/s", .right_aligned = true, .rank = 8, .csv = "tflop_per_s"},
           [](const auto& view) { return rate_text(view.rates.operations_per_s, 1e12); }},
          {{.heading = "SM clock MHz", .right_aligned = true, .rank = 9, .csv = "sm_clock_mhz"},
           [](const auto& view) {
             const int clock = view.row.conditions.sm_clock_mhz;
             return clock > 0 ? std::to_string(clock) : no_cell;
           }},
          {{.heading = "measured by", .rank = 3, .readers = people},
           [](const auto& view) { return view.row.signer; }}};
}

Field for_programs(const char* name, std::function<std::string(const RowView&)> cell) {
  return {{.heading = name, .readers = Readers::programs}, std::move(cell)};
}

/// One end of the 95% interval of the kernel's time.
std::string end_of_interval(const BenchRow& row, bool high) {
  if (row.samples_ns.empty()) return "";
  const MedianInterval interval = time_interval(row);
  return exact_milliseconds(high ? interval.high : interval.low);
}

std::vector<Field> time_fields() {
  return {
      for_programs("time_ms",
                   [](const auto& view) {
                     return view.row.median_ns > 0 ? exact_milliseconds(view.row.median_ns) : "";
                   }),
      for_programs("time_low_ms",
                   [](const auto& view) { return end_of_interval(view.row, false); }),
      for_programs("time_high_ms",
                   [](const auto& view) { return end_of_interval(view.row, true); }),
      for_programs("reference_ms", [](const auto& view) { return time_of(view.headline); }),
      for_programs("percent_of_reference",
                   [](const auto& view) { return percent_of(view.headline); }),
      for_programs("percent_of_reference_low",
                   [](const auto& view) {
                     return view.headline ? printed("%.1f", view.headline->percent.low) : "";
                   }),
      for_programs("percent_of_reference_high",
                   [](const auto& view) {
                     return view.headline ? printed("%.1f", view.headline->percent.high) : "";
                   }),
      for_programs("strongest_library", [](const auto& view) { return id_of(view.strongest); }),
      for_programs("strongest_library_ms",
                   [](const auto& view) { return time_of(view.strongest); }),
      for_programs("percent_of_strongest_library",
                   [](const auto& view) { return percent_of(view.strongest); }),
      for_programs("pytorch_ms", [](const auto& view) { return time_of(view.pytorch); }),
      for_programs("percent_of_pytorch", [](const auto& view) { return percent_of(view.pytorch); }),
      for_programs("torch_compile_ms", [](const auto& view) { return time_of(view.compiled); }),
      for_programs("percent_of_torch_compile",
                   [](const auto& view) { return percent_of(view.compiled); }),
      for_programs(
          "published_percent_of_pytorch",
          [](const auto& view) { return number_or_blank(published_percent(view), "%.1f"); }),
      for_programs(
          "percent_of_ceiling",
          [](const auto& view) { return number_or_blank(percent_of_ceiling(view.row), "%.1f"); }),
      for_programs("percent_of_speed_of_light", [](const auto& view) {
        return number_or_blank(percent_of_speed_of_light(view.row), "%.1f");
      })};
}

std::vector<Field> verdict_fields() {
  std::vector<Field> fields{for_programs(
      "status", [](const auto& view) { return std::string(to_string(view.row.status)); })};
  for (const BadgeDescription& badge : badge_table) {
    fields.push_back({{.heading = std::string(badge.name), .readers = Readers::programs},
                      [badge = badge.badge](const RowView& view) {
                        return std::string(view.row.badges.has(badge) ? "1" : "0");
                      }});
  }
  const std::vector<Field> rest{
      for_programs("max_error", [](const auto& view) { return view.row.max_error; }),
      for_programs("rms_error", [](const auto& view) { return view.row.rms_error; }),
      for_programs("truth_rms", [](const auto& view) { return view.row.truth_rms; }),
      for_programs("tolerance_share", [](const auto& view) { return view.row.tolerance_share; }),
      for_programs("message", [](const auto& view) { return view.row.message; }),
      for_programs("device", [](const auto& view) { return view.bench.device_name; }),
      for_programs("measured", [](const auto& view) { return view.row.measured; }),
      for_programs("measured_by", [](const auto& view) { return view.row.signer; }),
      for_programs("judge", [](const auto& view) { return view.row.harness; }),
      for_programs("sha256", [](const auto& view) { return view.row.sha256; })};
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

std::vector<Field> fields_of(BenchColumns columns) {
  std::vector<Field> fields = page_fields();
  if (columns == BenchColumns::page) return fields;
  for (const std::vector<Field>& more : {more_fields(), time_fields(), verdict_fields()}) {
    fields.insert(fields.end(), more.begin(), more.end());
  }
  return fields;
}

}  // namespace

std::string verdict_text(const BenchRow& row) {
  std::string text = to_string(row.status);
  if (!row.badges.empty()) text += ": " + joined(row.badges.names());
  return text;
}

std::string exact_milliseconds(std::int64_t nanoseconds) {
  return printed("%.6f", static_cast<double>(nanoseconds) / 1e6);
}

MedianInterval time_interval(const BenchRow& row) { return median_interval(row.samples_ns, 0.025); }

Table bench_table(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                  BenchColumns columns, const RowFilter& takes) {
  Table table;
  table.legend = badge_legend();
  const std::vector<Field> fields = fields_of(columns);
  for (const Field& field : fields) table.columns.push_back(field.column);
  const std::vector<const RecordedReference*> strongest = strongest_libraries(bench);
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const BenchRow& row = bench.rows[i];
    if (takes && !takes(row)) continue;
    const auto found = published.find(row.problem);
    const RowView view{bench,
                       row,
                       row.headline(),
                       strongest[i],
                       row.find("pytorch_eager"),
                       row.find("pytorch_compile"),
                       found == published.end() ? nullptr : &found->second,
                       achieved_rates(row)};
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const Field& field : fields) cells.push_back(field.cell(view));
  }
  return table;
}

}  // namespace rekernel
