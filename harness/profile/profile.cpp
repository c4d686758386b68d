#include "harness/profile/profile.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <numeric>

#include "harness/profile/metrics.h"

namespace rekernel {

namespace {

namespace json = boost::json;

constexpr double sector_bytes = 32;

std::optional<std::int64_t> whole(std::optional<double> value, double factor = 1) {
  if (!value || !(std::abs(*value * factor) < 9e18)) return std::nullopt;
  return std::llround(*value * factor);
}

std::optional<std::int64_t> sum(std::optional<std::int64_t> one,
                                std::optional<std::int64_t> other) {
  if (!one || !other) return std::nullopt;
  return *one + *other;
}

std::vector<std::pair<std::string, double>> stalls_of(const LaunchMetrics& metrics) {
  std::vector<std::pair<std::string, double>> stalls;
  double all = 0;
  for (const StallReason& reason : stall_reasons()) {
    const double value = metrics.value(stall_metric(reason)).value_or(0);
    if (!(value > 0)) continue;
    all += value;
    stalls.emplace_back(reason.words, value);
  }
  for (auto& [words, value] : stalls) value *= 100 / all;
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return stalls;
}

std::string words_of(const std::string& column) {
  for (const StallReason& reason : stall_reasons()) {
    if (reason.column == column || reason.metric == column) return std::string(reason.words);
  }
  return column;
}

template <class Value>
void put(json::object& object, const char* key, const std::optional<Value>& value) {
  if (value) object[key] = *value;
}

json::object to_json(const HotInstruction& hot) {
  json::object object{{"instruction", hot.text}, {"share", hot.share}, {"stall", hot.stall}};
  if (hot.line > 0) object["line"] = hot.line;
  if (hot.line > 0) object["source"] = hot.source;
  return object;
}

json::object to_json(const LaunchProfile& launch) {
  json::object object{{"kernel", launch.kernel},
                      {"grid", launch.grid},
                      {"block", launch.block},
                      {"duration_ns", launch.duration_ns}};
  put(object, "dram_read_bytes", launch.dram_read_bytes);
  put(object, "dram_written_bytes", launch.dram_written_bytes);
  put(object, "l2_read_bytes", launch.l2_read_bytes);
  put(object, "l2_written_bytes", launch.l2_written_bytes);
  put(object, "dram_percent", launch.dram_share);
  put(object, "l2_percent", launch.l2_share);
  put(object, "l1_percent", launch.l1_share);
  put(object, "sm_percent", launch.sm_share);
  put(object, "matrix_percent", launch.matrix_share);
  put(object, "issue_percent", launch.issue_share);
  put(object, "occupancy_percent", launch.occupancy);
  put(object, "possible_occupancy_percent", launch.possible_occupancy);
  put(object, "registers", launch.registers);
  put(object, "shared_bytes", launch.shared_bytes);
  put(object, "local_accesses", launch.local_accesses);
  put(object, "bank_conflicts", launch.bank_conflicts);
  put(object, "sectors_per_load", launch.sectors_per_load);
  put(object, "sectors_per_store", launch.sectors_per_store);
  put(object, "waves", launch.waves);
  json::array& stalls = object["stalls"].emplace_array();
  for (const auto& [words, percent] : launch.stalls) {
    stalls.push_back({{"reason", words}, {"percent", percent}});
  }
  json::array& hottest = object["hottest"].emplace_array();
  for (const HotInstruction& hot : launch.hottest) hottest.push_back(to_json(hot));
  return object;
}

}  // namespace

std::int64_t Profile::duration_ns() const {
  std::int64_t sum = 0;
  for (const LaunchProfile& launch : launches) sum += launch.duration_ns;
  return sum;
}

std::optional<std::int64_t> Profile::dram_bytes() const {
  std::optional<std::int64_t> bytes = 0;
  for (const LaunchProfile& launch : launches) {
    bytes = sum(bytes, sum(launch.dram_read_bytes, launch.dram_written_bytes));
  }
  return bytes;
}

std::optional<double> Profile::together(std::optional<double> LaunchProfile::*share) const {
  double weighted = 0;
  for (const LaunchProfile& launch : launches) {
    if (!(launch.*share)) return std::nullopt;
    weighted += *(launch.*share) * static_cast<double>(launch.duration_ns);
  }
  const std::int64_t all = duration_ns();
  return all > 0 ? std::optional(weighted / static_cast<double>(all)) : std::nullopt;
}

LaunchProfile launch_profile(const LaunchMetrics& metrics) {
  LaunchProfile launch;
  launch.kernel = metrics.kernel;
  launch.grid = metrics.grid;
  launch.block = metrics.block;
  const auto value = [&](std::string_view name) { return metrics.value(name); };
  launch.duration_ns = whole(value(metric::duration)).value_or(0);
  launch.dram_read_bytes = whole(value(metric::dram_read));
  launch.dram_written_bytes = whole(value(metric::dram_written));
  launch.l2_read_bytes = whole(value(metric::l2_sectors_read), sector_bytes);
  launch.l2_written_bytes = whole(value(metric::l2_sectors_written), sector_bytes);
  launch.dram_share = value(metric::dram_share);
  launch.l2_share = value(metric::l2_share);
  launch.l1_share = value(metric::l1_share);
  launch.sm_share = value(metric::sm_share);
  launch.matrix_share = value(metric::matrix_share);
  launch.issue_share = value(metric::issue_share);
  launch.occupancy = value(metric::occupancy);
  launch.possible_occupancy = value(metric::possible_occupancy);
  launch.registers = whole(value(metric::registers));
  launch.shared_bytes =
      sum(whole(value(metric::static_shared)), whole(value(metric::dynamic_shared)));
  launch.local_accesses =
      sum(whole(value(metric::local_loads)), whole(value(metric::local_stores)));
  launch.bank_conflicts = whole(value(metric::bank_conflicts));
  launch.sectors_per_load = value(metric::sectors_per_load);
  launch.sectors_per_store = value(metric::sectors_per_store);
  launch.waves = value(metric::waves);
  launch.stalls = stalls_of(metrics);
  return launch;
}

std::vector<HotInstruction> hottest_of(const std::vector<SampledInstruction>& instructions,
                                       std::size_t most) {
  std::int64_t all = 0;
  for (const SampledInstruction& one : instructions) all += one.samples;
  std::vector<const SampledInstruction*> order;
  for (const SampledInstruction& one : instructions) {
    if (one.samples > 0) order.push_back(&one);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->samples > b->samples; });
  order.resize(std::min(order.size(), most));
  std::vector<HotInstruction> hottest;
  for (const SampledInstruction* one : order) {
    hottest.push_back({one->text, static_cast<double>(one->samples) / static_cast<double>(all),
                       words_of(one->stall), one->line, ""});
  }
  return hottest;
}

json::object to_json(const Profile& profile) {
  json::array launches;
  for (const LaunchProfile& launch : profile.launches) launches.push_back(to_json(launch));
  json::object object{{"schema", 1},
                      {"problem", profile.problem},
                      {"kernel", profile.kernel},
                      {"sha256", profile.sha256},
                      {"device", profile.device},
                      {"tool", profile.tool},
                      {"least_bytes", profile.least_bytes},
                      {"duration_ns", profile.duration_ns()}};
  put(object, "dram_bytes", profile.dram_bytes());
  put(object, "dram_percent", profile.together(&LaunchProfile::dram_share));
  put(object, "matrix_percent", profile.together(&LaunchProfile::matrix_share));
  object["launches"] = std::move(launches);
  return object;
}

}  // namespace rekernel
