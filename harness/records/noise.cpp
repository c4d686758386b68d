#include "harness/records/noise.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

#include "harness/base/files.h"
#include "harness/base/json_fields.h"
#include "harness/base/markdown.h"
#include "harness/base/quantile.h"
#include "harness/base/text.h"
#include "harness/evaluation/statistics.h"
#include "harness/records/record.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr int least_percent_containing_one = 95;
constexpr double widest_half_width = 1.0;  // percent

namespace noise_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

constexpr std::tuple row_fields{
    field("problem", &NoiseRow::problem, text),
    field("subject", &NoiseRow::subject, text),
    field("sha256", &NoiseRow::sha256, text),
    field("details", &NoiseRow::details, text),
    field("measured", &NoiseRow::measured, text),
    field("conditions", &NoiseRow::conditions, By{&conditions_from_json}),
    field("starts", &NoiseRow::starts, Whole{1, 10000}),
    field("runs", &NoiseRow::runs, List{By{&noise_run_from_json}, 1})};

constexpr std::tuple device_fields{field("name", &NoiseRecord::device_name, text),
                                   field("sm", &NoiseRecord::sm, text)};

constexpr std::tuple record_fields{schema(1), Within{"device", device_fields},
                                   field("toolchain", &NoiseRecord::toolchain, TextMap{}),
                                   field("rows", &NoiseRecord::rows, List{Nested{row_fields}})};

}  // namespace noise_json

std::string caption(const NoiseRecord& record) {
  std::string text = record.device_name + " (sm " + record.sm + ")";
  for (const auto& [component, version] : record.toolchain) {
    text +=
        (component == record.toolchain.begin()->first ? "; " : ", ") + component + " " + version;
  }
  return text;
}

}  // namespace

bool NoiseSummary::holds() const {
  return runs > 0 && 100 * containing_one >= least_percent_containing_one * runs &&
         largest_half_width <= widest_half_width;
}

NoiseSummary summarise(const NoiseRow& row) {
  NoiseSummary summary;
  std::vector<double> half_widths;
  std::vector<std::int64_t> all;
  std::size_t fewest = std::numeric_limits<int>::max();
  for (const NoiseRun& run : row.runs) {
    const Percent percent = percent_of_reference(run.first_ns, run.second_ns);
    ++summary.runs;
    if (percent.low <= 100.0 && percent.high >= 100.0) ++summary.containing_one;
    half_widths.push_back((percent.high - percent.low) / 2.0);
    fewest = std::min({fewest, run.first_ns.size(), run.second_ns.size()});
    for (const auto* side : {&run.first_ns, &run.second_ns}) {
      all.insert(all.end(), side->begin(), side->end());
    }
  }
  if (half_widths.empty()) return summary;
  std::sort(half_widths.begin(), half_widths.end());
  summary.samples = static_cast<int>(fewest);
  summary.median_half_width =
      (half_widths[(half_widths.size() - 1) / 2] + half_widths[half_widths.size() / 2]) / 2.0;
  summary.largest_half_width = half_widths.back();
  summary.median_ns = static_cast<std::int64_t>(quantile(all, 0.5));
  return summary;
}

boost::json::object to_json(const NoiseRecord& record) {
  return object_of(record, noise_json::record_fields);
}

Result<NoiseRecord> noise_from_json(const boost::json::value& json, const std::string& where) {
  JsonReader reader(where, json);
  NoiseRecord record = read_object<NoiseRecord>(reader, noise_json::record_fields);
  if (auto error = reader.error()) return *error;
  return record;
}

Result<NoiseRecord> load_noise(const fs::path& path) {
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();
  return noise_from_json(*json, path.string());
}

void merge(NoiseRecord& into, const NoiseRecord& from) {
  into.device_name = from.device_name;
  into.sm = from.sm;
  into.toolchain = from.toolchain;
  for (const NoiseRow& row : from.rows) {
    const auto same = std::find_if(into.rows.begin(), into.rows.end(), [&](const NoiseRow& old) {
      return old.problem == row.problem && old.subject == row.subject;
    });
    if (same != into.rows.end()) {
      *same = row;
    } else {
      into.rows.push_back(row);
    }
  }
}

Result<fs::path> record_noise(const fs::path& root, const NoiseRecord& measured) {
  const fs::path path = bench_path(root, measured.device_name).replace_filename("noise.json");
  NoiseRecord record;
  if (fs::exists(path)) {
    Result<NoiseRecord> old = load_noise(path);
    if (!old) return old.error();
    record = std::move(*old);
  }
  merge(record, measured);
  fs::create_directories(path.parent_path());
  // On one line: thousands of raw samples are nothing to read.
  Result<Ok> written = write_file_atomically(path, boost::json::serialize(to_json(record)) + "\n");
  if (!written) return written.error();
  return path;
}

std::vector<fs::path> recorded_noises(const fs::path& root) {
  return recorded_files(root, "noise.json");
}

Table noise_table(const NoiseRecord& record) {
  Table table;
  table.columns = {
      {.heading = "problem"},
      {.heading = "timed against itself"},
      {.heading = "ms", .right_aligned = true},
      {.heading = "runs", .right_aligned = true},
      {.heading = "starts", .right_aligned = true, .rank = 2},
      {.heading = "samples a side", .right_aligned = true, .rank = 2},
      {.heading = "intervals that contain 1", .right_aligned = true, .short_heading = "with 1"},
      {.heading = "half width, median", .right_aligned = true, .rank = 1},
      {.heading = "half width, largest", .right_aligned = true, .short_heading = "widest"},
      {.heading = "rejected samples", .right_aligned = true, .rank = 2},
      {.heading = "criterion", .good = "holds"},
      {.heading = "measured", .rank = 1}};
  for (const NoiseRow& row : record.rows) {
    const NoiseSummary summary = summarise(row);
    table.rows.push_back({row.problem, row.subject, milliseconds(summary.median_ns),
                          std::to_string(summary.runs), std::to_string(row.starts),
                          std::to_string(summary.samples), std::to_string(summary.containing_one),
                          "±" + printed("%.2f%%", summary.median_half_width),
                          "±" + printed("%.2f%%", summary.largest_half_width),
                          std::to_string(row.conditions.rejected_samples),
                          summary.holds() ? "holds" : "missed", row.measured});
  }
  return table;
}

Result<std::string> timing_page(const fs::path& root) {
  const fs::path path = root / "harness" / "TIMING.md";
  Result<std::string> page = read_file(path);
  if (!page) return page.error();
  std::string tables;
  for (const fs::path& recorded : recorded_noises(root)) {
    Result<NoiseRecord> record = load_noise(recorded);
    if (!record) return record.error();
    tables +=
        "\n" + to_markdown(noise_table(*record)) + "\n" + markdown_text(caption(*record)) + ".\n";
  }
  if (tables.empty()) tables = "\nNot measured yet.\n";
  Result<Ok> replaced = replace_section(*page, "noise", tables + "\n", path);
  if (!replaced) return replaced.error();
  return page;
}

}  // namespace rekernel
