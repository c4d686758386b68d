#include "harness/records/known_devices.h"

#include <algorithm>
#include <array>

#include "harness/base/json.h"

namespace rekernel {

namespace {

/// Every figure is the driver's own (cuDeviceGetAttribute, deviceQuery): vendors' tables round, and
/// count otherwise.
constexpr std::array known_devices = {
    // Both as in results/*/bench.json and as read from the devices there.
    KnownDevice{"NVIDIA H200", "9.0", 132, 62'914'560, 1'980'000, 3'201'000, 6016},
    KnownDevice{"NVIDIA H100 80GB HBM3", "9.0", 132, 52'428'800, 1'980'000, 2'619'000, 5120},
    // deviceQuery at the Paderborn Center for Parallel Computing,
    // https://upb-pc2.atlassian.net/wiki/spaces/PC2DOK/pages/1900609/NVIDIA+A100+40GB+with+NVLINK
    KnownDevice{"NVIDIA A100-SXM4-40GB", "8.0", 108, 41'943'040, 1'410'000, 1'215'000, 5120},
};

/// One property of a device, as a bench file names it.
struct DeviceField {
  const char* name;
  std::string value;  ///< empty: the record does not say

  DeviceField(const char* field, std::string_view text) : name(field), value(text) {}
  DeviceField(const char* field, std::int64_t number)
      : name(field), value(number > 0 ? std::to_string(number) : "") {}
};

/// The one place that says what is compared. A field that a bench file gets is a line in both
/// lists.
std::vector<DeviceField> fields_of(const Bench& bench) {
  return {
      {"sm", bench.sm},
      {"multiprocessors", bench.multiprocessors},
      {"l2_bytes", bench.l2_bytes},
      {"clock_khz", bench.clock_khz},
      {"memory_clock_khz", bench.memory_clock_khz},
      {"memory_bus_bits", bench.memory_bus_bits},
  };
}
std::vector<DeviceField> fields_of(const KnownDevice& device) {
  return {
      {"sm", device.sm},
      {"multiprocessors", device.multiprocessors},
      {"l2_bytes", device.l2_bytes},
      {"clock_khz", device.clock_khz},
      {"memory_clock_khz", device.memory_clock_khz},
      {"memory_bus_bits", device.memory_bus_bits},
  };
}

std::string shown(const std::string& value) {
  constexpr std::size_t longest = 40;
  return value.empty() ? "not said" : one_line(value, longest);
}

}  // namespace

double KnownDevice::memory_bytes_per_s() const {
  return 2.0 * 1e3 * static_cast<double>(memory_clock_khz) * (memory_bus_bits / 8.0);
}

std::span<const KnownDevice> all_known_devices() { return known_devices; }

const KnownDevice* find_known_device(std::string_view name) {
  const auto* found = std::find_if(known_devices.begin(), known_devices.end(),
                                   [&](const KnownDevice& one) { return one.name == name; });
  return found == known_devices.end() ? nullptr : found;
}

std::vector<std::string> unlike_known_device(const Bench& bench) {
  const KnownDevice* known = find_known_device(bench.device_name);
  if (!known) return {};
  const std::vector<DeviceField> said = fields_of(bench);
  const std::vector<DeviceField> is = fields_of(*known);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (said[i].value == is[i].value) continue;
    found.push_back(std::string("device.") + is[i].name + ": " + shown(said[i].value) + ", but " +
                    std::string(known->name) + " has " + is[i].value);
  }
  if (static_cast<double>(bench.ceilings.copy_bytes_per_s) > known->memory_bytes_per_s()) {
    found.push_back(
        "ceilings.copy_bytes_per_s: " + std::to_string(bench.ceilings.copy_bytes_per_s) +
        ", but the memory of " + std::string(known->name) + " moves " +
        std::to_string(static_cast<std::int64_t>(known->memory_bytes_per_s())) + " at the most");
  }
  return found;
}

std::vector<std::string> unlike_device_before(const Bench& before, const Bench& now) {
  std::vector<std::string> found;
  if (before.device_name != now.device_name) {
    found.push_back("device.name: '" + shown(now.device_name) + "', before '" +
                    shown(before.device_name) + "'");
  }
  const std::vector<DeviceField> then = fields_of(before);
  const std::vector<DeviceField> said = fields_of(now);
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (then[i].value.empty() || then[i].value == said[i].value) continue;
    found.push_back(std::string("device.") + then[i].name + ": " + shown(said[i].value) +
                    ", before " + shown(then[i].value));
  }
  return found;
}

}  // namespace rekernel
