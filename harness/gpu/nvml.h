#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// What the management library says of a GPU at one moment.
struct GpuReading {
  int sm_clock_mhz = 0;
  int temperature_c = 0;
  int power_w = 0;
  std::int64_t throttle_reasons = 0;  ///< NVML's bit mask of clock event reasons, idle left out

  /// Slowed by heat, a power brake, a hardware limit or the slowest of a group of GPUs. The
  /// software power cap, under which every large GPU runs its matrix work, is recorded but does not
  /// count.
  bool throttled() const;
};

/// NVML, loaded at run time. Reading takes tens of microseconds and never changes a setting.
class GpuMonitor {
 public:
  /// By the device's UUID (32 hexadecimal digits), since NVML numbers devices in its own order.
  static Result<GpuMonitor> open(const std::string& uuid);
  GpuReading read() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// "NVIDIA driver 580.95.05", or an error when there is none.
Result<std::string> driver_version_text();

}  // namespace rekernel
