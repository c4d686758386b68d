#include "replay/recorded_bench.h"

#include <boost/json.hpp>
#include <map>

#include "replay/outcome.h"

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

}  // namespace

Result<Bench> recorded_bench(const ReplayedSearch& search, const ReplayedCandidate& candidate,
                             const std::string& kernel) {
  const std::string where = search.header.name + ": " + candidate.id;
  if (!candidate.outcome.passed()) {
    return Error{where + " did not pass (" + to_string(candidate.outcome.status) +
                 "): only the measurement of a kernel that passed is recorded"};
  }
  if (candidate.device.empty()) return Error{where + ": its record names no device"};
  const Result<Evaluation> evaluation = evaluation_from_record(candidate.record, where);
  if (!evaluation) return evaluation.error();
  BenchRow row =
      bench_row(*evaluation, toolchain_from_text(text_in(candidate.record, "toolchain")));
  row.kernel = kernel;
  if (const std::string date = text_in(candidate.record, "measured"); !date.empty()) {
    row.measured = date;
  }
  Bench bench;
  bench.device_name = candidate.device;
  bench.sm = capability_text(evaluation->target);
  if (search.header.device.name == candidate.device) {
    bench.multiprocessors = static_cast<int>(search.header.device.multiprocessors);
    bench.l2_bytes = search.header.device.l2_bytes;
  }
  bench.rows.push_back(std::move(row));
  summarise_rows(bench);
  // Somebody else may have written the record: what is merged must be readable afterwards.
  return bench_from_json(to_json(bench), where);
}

}  // namespace rekernel
