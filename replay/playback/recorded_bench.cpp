#include "replay/playback/recorded_bench.h"

#include <boost/json.hpp>
#include <cstdlib>
#include <map>

#include "harness/evaluation/speed_of_light.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "harness/records/known_devices.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {
namespace {

namespace json = boost::json;

std::string text_in(const json::object& record, const char* key) {
  const json::value* value = record.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

/// "NVRTC 13.0, driver 580.159.04" by component.
std::map<std::string, std::string> toolchain_from_text(std::string_view text) {
  constexpr std::string_view separator = ", ";
  std::map<std::string, std::string> toolchain;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t blank = entry.find(' ');
    if (blank != std::string_view::npos) {
      toolchain[std::string(entry.substr(0, blank))] = entry.substr(blank + 1);
    }
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return toolchain;
}

/// "sm_90a" → "9.0"
std::string capability_text(std::string_view target) {
  const std::optional<ComputeCapability> capability = capability_of(target);
  if (!capability) return "";
  return std::to_string(capability->major) + "." + std::to_string(capability->minor);
}

/// A trajectory keeps four digits of them, a bench one decimal.
void make_percentages_again(Evaluation& evaluation) {
  if (!evaluation.timing || evaluation.timing->samples_ns.empty()) return;
  for (ReferenceResult& reference : evaluation.references) {
    if (reference.timing.samples_ns.empty()) continue;
    reference.percent_of_reference =
        percent_of_reference(reference.timing.samples_ns, evaluation.timing->samples_ns);
  }
}

}  // namespace

Result<Bench> recorded_bench(const ReplayedSearch& search, const ReplayedCandidate& candidate,
                             const std::string& kernel) {
  const std::string where = search.header.name + ": " + candidate.id;
  if (!candidate.outcome.passed()) {
    return Error{where + " did not pass (" + to_string(candidate.outcome.status) +
                 "): only the measurement of a kernel that passed is recorded"};
  }
  if (candidate.device.empty()) return Error{where + ": its record names no device"};
  Result<Evaluation> evaluation = evaluation_from_record(candidate.record, where);
  if (!evaluation) return evaluation.error();
  make_percentages_again(*evaluation);
  BenchRow row =
      bench_row(*evaluation, toolchain_from_text(text_in(candidate.record, "toolchain")));
  row.kernel = kernel;
  if (!row.complete()) {
    return Error{where + ": its record is from before samples, evidence and ceilings were kept: " +
                 "extract it without --record, and measure it with `rekernel bench`"};
  }
  if (const std::string date = text_in(candidate.record, "measured"); !date.empty()) {
    row.measured = date;
  }
  Bench bench;
  bench.device_name = candidate.device;
  bench.sm = capability_text(evaluation->target);
  if (search.header.device.name == candidate.device) {
    bench.multiprocessors = static_cast<int>(search.header.device.multiprocessors);
    bench.l2_bytes = search.header.device.l2_bytes;
    bench.clock_khz = search.header.device.clock_khz;
    bench.memory_clock_khz = search.header.device.memory_clock_khz;
    bench.memory_bus_bits = search.header.device.memory_bus_bits;
  }
  // Searches from before these were kept: what the chip has is known.
  if (const KnownDevice* known = find_known_device(bench.device_name)) {
    if (bench.clock_khz == 0) bench.clock_khz = known->clock_khz;
    if (bench.memory_clock_khz == 0) bench.memory_clock_khz = known->memory_clock_khz;
    if (bench.memory_bus_bits == 0) bench.memory_bus_bits = known->memory_bus_bits;
  }
  if (row.speed_of_light_ns == 0) {
    row.speed_of_light_ns = speed_of_light_ns(*find_problem(row.problem), device_of(bench));
  }
  bench.rows.push_back(std::move(row));
  summarise_rows(bench);
  // Somebody else may have written the record: what is merged must be readable afterwards.
  return bench_from_json(to_json(bench), where);
}

std::vector<std::string> unlike_origin(const BenchRow& row, const std::string& device,
                                       const ReplayedCandidate& origin) {
  constexpr double most_of_time = 1.25;
  constexpr double most_of_errors = 4.0;
  std::vector<std::string> lines;
  if (row.sha256 != origin.sha256 || device != origin.device) return lines;
  const std::string at_origin = ", but at its origin, " + origin.id + ", ";
  if (row.status != origin.outcome.status) {
    lines.push_back(std::string("status: ") + to_string(row.status) + at_origin + "it is " +
                    to_string(origin.outcome.status));
    return lines;
  }
  const auto unlike = [](double a, double b, double most) {
    return a > 0 && b > 0 && (a > most * b || b > most * a);
  };
  if (unlike(static_cast<double>(row.median_ns),
             static_cast<double>(origin.outcome.median_ns.value_or(0)), most_of_time)) {
    lines.push_back("median_ns: " + std::to_string(row.median_ns) + at_origin + "it is " +
                    std::to_string(*origin.outcome.median_ns));
  }
  if (unlike(std::strtod(row.max_error.c_str(), nullptr),
             std::strtod(origin.outcome.max_error.c_str(), nullptr), most_of_errors)) {
    lines.push_back("max_error: " + row.max_error + at_origin + "it is " +
                    origin.outcome.max_error);
  }
  return lines;
}

std::vector<std::string> unlike_known_device(const DeviceFacts& device) {
  const KnownDevice* known = find_known_device(device.name);
  if (!known) return {};
  std::vector<std::string> found;
  const auto compare = [&](const char* field, std::int64_t said, std::int64_t is) {
    if (said == is) return;
    found.push_back(std::string("device.") + field + ": " + std::to_string(said) + ", but " +
                    std::string(known->name) + " has " + std::to_string(is));
  };
  compare("multiprocessors", device.multiprocessors, known->multiprocessors);
  compare("l2_bytes", device.l2_bytes, known->l2_bytes);
  const auto copy = static_cast<double>(device.copy_bytes_per_s);
  if (copy > known->memory_bytes_per_s()) {
    found.push_back("device.copy_bytes_per_s: " + std::to_string(device.copy_bytes_per_s) +
                    " is more than the memory of " + std::string(known->name) + " moves");
  }
  return found;
}

}  // namespace rekernel
