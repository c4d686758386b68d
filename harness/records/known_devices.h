#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/records/record.h"

namespace rekernel {

/// What the driver says of a chip. A record can say anything of its device, and its bounds follow
/// from that: so the figures of a known name come from here.
struct KnownDevice {
  std::string_view name;  ///< the driver's, "NVIDIA H200"
  std::string_view sm;    ///< compute capability, "9.0"
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t clock_khz = 0;  ///< highest of the multiprocessors
  std::int64_t memory_clock_khz = 0;
  int memory_bus_bits = 0;

  /// What the memory can move at the most: two transfers a clock.
  double memory_bytes_per_s() const;
};

std::span<const KnownDevice> all_known_devices();
/// Nothing for a device that no maintainer has looked at.
const KnownDevice* find_known_device(std::string_view name);

/// What is said of a device that is not in the table.
inline constexpr const char* not_a_known_device = "not in the table of known devices";

/// Where a record's device is not the chip of that name: "device.l2_bytes: 1, but NVIDIA H200 has
/// 62914560" each. Nothing for an unknown one.
std::vector<std::string> unlike_known_device(const Bench& bench);

/// The same between two records of one device: `now` must say what `before` says. Fields that an
/// older record lacks are not compared.
std::vector<std::string> unlike_device_before(const Bench& before, const Bench& now);

}  // namespace rekernel
