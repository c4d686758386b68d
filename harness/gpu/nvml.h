#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/gpu/identity.h"
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

/// What a process has open on a GPU. Under MPS, a compute context's owner is the MPS server, and
/// its clients are listed as such.
struct GpuContext {
  enum class Kind { compute, mps_client, graphics };
  int process = 0;  ///< of which PID namespace, see exclusive.h
  Kind kind = Kind::compute;
  std::optional<std::int64_t> memory_bytes;
};

/// NVML, loaded at run time. Reading takes tens of microseconds and never changes a setting.
class GpuMonitor {
 public:
  /// By the device's UUID (32 hexadecimal digits), since NVML numbers devices in its own order.
  static Result<GpuMonitor> open(const std::string& uuid);
  GpuReading read() const;
  /// Every context on the GPU, ours too. The error says in NVML's words why compute contexts cannot
  /// be listed; boards without graphics or MPS have none of those.
  Result<std::vector<GpuContext>> contexts() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// The GPU with this UUID, "GPU-01234567-89ab-…", or with this number along the bus. An error
/// where there is none, or where one is divided into instances (MIG), which CUDA counts in its
/// place.
Result<GpuIdentity> nvml_identity(const std::string& uuid);
Result<GpuIdentity> nvml_identity(unsigned index);
Result<int> nvml_gpu_count();

/// "NVIDIA driver 580.95.05", or an error when there is none.
Result<std::string> driver_version_text();

}  // namespace rekernel
