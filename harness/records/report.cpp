#include "harness/records/report.h"

#include <algorithm>
#include <set>

#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/records/known_devices.h"

namespace rekernel {

namespace {

const char* const missing = "–";

/// The library's configurations that were timed beside the kernel, PyTorch left out.
std::vector<const RecordedReference*> libraries(const BenchRow& row) {
  std::vector<const RecordedReference*> found;
  for (const RecordedReference& reference : row.references) {
    if (!reference.unavailable.empty() || reference.id.starts_with("pytorch_")) continue;
    found.push_back(&reference);
  }
  return found;
}

std::string named_percent(const RecordedReference* reference) {
  if (!reference) return missing;
  return percent_text(reference->percent.value) + " (" + reference->id + " " +
         milliseconds(reference->median_ns) + ")";
}

std::string plain_percent(const RecordedReference* reference) {
  return reference ? percent_text(reference->percent.value) + " (" +
                         milliseconds(reference->median_ns) + ")"
                   : missing;
}

std::string headline_percent(const RecordedReference* reference) {
  if (!reference) return missing;
  const double half_width = (reference->percent.high - reference->percent.low) / 2.0;
  return percent_text(reference->percent.value) + " ± " + printed("%.1f", half_width);
}

std::string published_percent(const std::string& problem,
                              const std::map<std::string, PublishedFigures>& published) {
  const auto found = published.find(problem);
  if (found == published.end() || !found->second.percent_of_pytorch_eager) return missing;
  return percent_text(*found->second.percent_of_pytorch_eager);
}

std::string share(const std::optional<double>& percent) {
  return percent ? percent_text(*percent) : missing;
}

/// The bound's share of a timed kernel's time; nothing without either.
std::optional<double> percent_of_time(std::int64_t bound_ns, const BenchRow& row) {
  if (bound_ns <= 0 || row.median_ns <= 0) return std::nullopt;
  return 100.0 * static_cast<double>(bound_ns) / static_cast<double>(row.median_ns);
}

/// Bytes or operations of the problem in a second, in units of `unit`.
std::string rate_text(const std::optional<double>& per_second, double unit) {
  return per_second ? printed("%.0f", *per_second / unit) : missing;
}

/// Cells that only text for terminals has: a page in the project would be too wide with them.
void add_rates(Table& table, const Bench& bench) {
  const std::vector<Table::Column> columns = {
      {.heading = "GB/s", .right_aligned = true, .rank = 5},
      {.heading = "TFLOP/s", .right_aligned = true, .rank = 5},
      {.heading = "SM clock MHz", .right_aligned = true, .rank = 6},
      {.heading = "measured by", .rank = 4}};
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const Rates rates = achieved_rates(bench.rows[i]);
    const int clock = bench.rows[i].conditions.sm_clock_mhz;
    table.rows[i].push_back(rate_text(rates.bytes_per_s, 1e9));
    table.rows[i].push_back(rate_text(rates.operations_per_s, 1e12));
    table.rows[i].push_back(clock > 0 ? std::to_string(clock) : missing);
    table.rows[i].push_back(bench.rows[i].signer);
  }
}

}  // namespace

std::vector<const RecordedReference*> strongest_libraries(const Bench& bench) {
  std::map<std::string, std::size_t> most;
  std::vector<std::vector<const RecordedReference*>> timed;
  for (const BenchRow& row : bench.rows) {
    timed.push_back(libraries(row));
    most[row.problem] = std::max(most[row.problem], timed.back().size());
  }
  std::vector<const RecordedReference*> strongest;
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const auto fastest =
        std::min_element(timed[i].begin(), timed[i].end(),
                         [](const auto* a, const auto* b) { return a->median_ns < b->median_ns; });
    const bool all_were_timed = timed[i].size() == most[bench.rows[i].problem];
    strongest.push_back(all_were_timed && fastest != timed[i].end() ? *fastest : nullptr);
  }
  return strongest;
}

std::optional<double> percent_of_ceiling(const BenchRow& row) {
  return percent_of_time(row.ceiling_ns, row);
}

std::optional<double> percent_of_speed_of_light(const BenchRow& row) {
  return percent_of_time(row.speed_of_light_ns, row);
}

Rates achieved_rates(const BenchRow& row) {
  const Problem* problem = find_problem(row.problem);
  if (!problem || row.median_ns <= 0) return {};
  const double seconds = static_cast<double>(row.median_ns) / 1e9;
  return {static_cast<double>(problem->min_bytes) / seconds,
          static_cast<double>(problem->operations) / seconds};
}

Result<Ok> replace_section(std::string& page, const std::string& name, const std::string& content,
                           const std::filesystem::path& path) {
  const std::string start = "<!-- " + name + ":start -->\n";
  const std::string end = "<!-- " + name + ":end -->";
  const std::size_t from = page.find(start);
  const std::size_t to = from == std::string::npos ? from : page.find(end, from);
  if (to == std::string::npos) {
    return Error{path.string() + ": expected the markers '" + start.substr(0, start.size() - 1) +
                 "' and '" + end + "'"};
  }
  page.replace(from + start.size(), to - from - start.size(), content);
  return Ok{};
}

Table bench_table(const Bench& bench, const std::map<std::string, PublishedFigures>& published,
                  BenchColumns columns) {
  Table table;
  table.columns = {
      {.heading = "problem"},
      {.heading = "kernel"},
      {.heading = "ms", .right_aligned = true},
      {.heading = "reference", .rank = 3},
      {.heading = "ms", .right_aligned = true, .rank = 3},
      {.heading = "% of reference", .right_aligned = true, .short_heading = "% of ref."},
      {.heading = "% of strongest library", .right_aligned = true, .rank = 4},
      {.heading = "% of PyTorch", .right_aligned = true, .rank = 4},
      {.heading = "% of torch.compile", .right_aligned = true, .rank = 4},
      {.heading = "published %", .right_aligned = true, .rank = 1, .short_heading = "published"},
      {.heading = "% of ceiling", .right_aligned = true, .short_heading = "% ceiling"},
      {.heading = "% of speed of light", .right_aligned = true, .rank = 5},
      {.heading = "verdict", .cut = true, .good = to_string(Status::passed)}};
  const std::vector<const RecordedReference*> strongest = strongest_libraries(bench);
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const BenchRow& row = bench.rows[i];
    const RecordedReference* headline = row.headline();
    std::string verdict = to_string(row.status);
    if (!row.badges.empty()) verdict += ": " + joined(row.badges.names());
    table.rows.push_back(
        {row.problem, row.kernel, row.median_ns > 0 ? milliseconds(row.median_ns) : missing,
         headline ? headline->id : missing, headline ? milliseconds(headline->median_ns) : missing,
         headline_percent(headline), named_percent(strongest[i]),
         plain_percent(row.find("pytorch_eager")), plain_percent(row.find("pytorch_compile")),
         published_percent(row.problem, published), share(percent_of_ceiling(row)),
         share(percent_of_speed_of_light(row)), verdict});
  }
  if (columns == BenchColumns::all) add_rates(table, bench);
  return table;
}

std::vector<std::string> bench_remarks(const Bench& bench) {
  std::vector<std::string> remarks;
  for (const BenchRow& row : bench.rows) {
    const std::string name = row.problem + "/" + row.kernel + ": ";
    if (!row.message.empty()) remarks.push_back(name + row.message);
    for (const RecordedReference& reference : row.references) {
      if (!reference.unavailable.empty()) {
        remarks.push_back(name + reference.id + " is not available: " + reference.unavailable);
      }
    }
  }
  return remarks;
}

std::string bench_caption(const Bench& bench) {
  std::set<std::string> dates;
  for (const BenchRow& row : bench.rows) dates.insert(row.measured);
  std::vector<std::string> versions;
  for (const auto& [component, version] : bench.toolchain) {
    versions.push_back(component + " " + version);
  }
  std::string text =
      bench.device_name + " (sm " + bench.sm + ", " + std::to_string(bench.multiprocessors) +
      " SMs" +
      (find_known_device(bench.device_name) ? ")" : std::string("; ") + not_a_known_device + ")");
  if (!dates.empty()) {
    text += ", measured " + *dates.begin();
    if (dates.size() > 1) text += " to " + *dates.rbegin();
    const std::set<std::string> signers = [&] {
      std::set<std::string> names;
      for (const BenchRow& row : bench.rows) names.insert(row.signer);
      return names;
    }();
    // Unsigned is said alone, since somebody measured it all the same.
    text += (signers == std::set<std::string>{"unsigned"} ? ", " : ", by ") +
            joined(std::vector<std::string>(signers.begin(), signers.end()));
  }
  // A record that a search's evaluation began has no ceilings: only a bench run measures them.
  if (bench.ceilings.copy_bytes_per_s > 0) {
    text += "; copy " +
            printed("%.2f TB/s", static_cast<double>(bench.ceilings.copy_bytes_per_s) / 1e12);
  }
  if (bench.ceilings.fp16_flops_per_s > 0) {
    text += ", FP16 product " +
            printed("%.0f TFLOP/s", static_cast<double>(bench.ceilings.fp16_flops_per_s) / 1e12);
  }
  if (!versions.empty()) text += "; " + joined(versions, ", ");
  return text;
}

std::string milliseconds(std::int64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds) / 1e6;
  return printed(value < 1.0 ? "%.4f" : "%.3f", value);
}

std::string percent_text(double percent) { return printed("%.1f%%", percent); }

}  // namespace rekernel
