#include "harness/records/report.h"

#include <algorithm>
#include <set>

#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/problems/sizes.h"
#include "harness/records/known_devices.h"

namespace rekernel {

namespace {

/// The library's configurations that were timed beside the kernel, PyTorch left out.
std::vector<const RecordedReference*> libraries(const BenchRow& row) {
  std::vector<const RecordedReference*> found;
  for (const RecordedReference& reference : row.references) {
    if (!reference.unavailable.empty() || reference.id.starts_with("pytorch_")) continue;
    found.push_back(&reference);
  }
  return found;
}

/// The bound's share of a timed kernel's time; nothing without either.
std::optional<double> percent_of_time(std::int64_t bound_ns, const BenchRow& row) {
  if (bound_ns <= 0 || row.median_ns <= 0) return std::nullopt;
  return 100.0 * static_cast<double>(bound_ns) / static_cast<double>(row.median_ns);
}

}  // namespace

std::string other_sizes_text(const std::vector<SizeResult>& results) {
  std::size_t right = 0;
  std::vector<std::string> times, failures;
  for (const SizeResult& one : results) {
    if (one.status == Status::passed) ++right;
    if (one.status != Status::passed) {
      failures.push_back(std::string(to_string(one.status)) + " at " + sizes_text(one.sizes));
    } else if (one.median_ns > 0) {
      times.push_back(milliseconds(one.median_ns) + " ms at " + sizes_text(one.sizes));
    }
  }
  if (results.empty()) return "";
  failures.insert(failures.end(), times.begin(), times.end());
  return "right at " + std::to_string(right) + (failures.empty() ? "" : ": ") +
         joined(failures, "; ");
}

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
