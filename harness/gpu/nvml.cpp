#include "harness/gpu/nvml.h"

#include "harness/gpu/library.h"

namespace rekernel {

// NVML's header is not in the packages that the build needs, so the few functions used are declared
// here as its documentation gives them.
namespace nvml {
using Device = struct nvmlDevice_st*;
using Init = int();
using SystemDriverVersion = int(char*, unsigned);
using HandleByUuid = int(const char*, Device*);
using ClockInfo = int(Device, int, unsigned*);
using Temperature = int(Device, int, unsigned*);
using PowerUsage = int(Device, unsigned*);
using ThrottleReasons = int(Device, unsigned long long*);

constexpr int success = 0;
constexpr int clock_sm = 1;
constexpr int temperature_gpu = 0;
constexpr std::int64_t reason_idle = 0x1;
constexpr std::int64_t reason_hardware_slowdown = 0x8;
constexpr std::int64_t reason_sync_boost = 0x10;
constexpr std::int64_t reason_software_thermal = 0x20;
constexpr std::int64_t reason_hardware_thermal = 0x40;
constexpr std::int64_t reason_hardware_power_brake = 0x80;
}  // namespace nvml

struct GpuMonitor::State {
  nvml::Device device = nullptr;
  nvml::ClockInfo* clock = nullptr;
  nvml::Temperature* temperature = nullptr;
  nvml::PowerUsage* power = nullptr;
  nvml::ThrottleReasons* reasons = nullptr;
};

namespace {

Result<DynamicLibrary> open_nvml() {
  Result<DynamicLibrary> library = DynamicLibrary::open({"libnvidia-ml.so.1"});
  if (!library) return library.error();
  nvml::Init* init = nullptr;
  if (!library->load("nvmlInit_v2", init) || init() != nvml::success) {
    return Error{"libnvidia-ml.so.1 does not initialise"};
  }
  return library;
}

/// CUDA's 16 bytes as NVML writes them: GPU-01234567-89ab-….
std::string nvml_uuid(const std::string& digits) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += digits[i];
  }
  return text;
}

}  // namespace

bool GpuReading::throttled() const {
  constexpr std::int64_t slowed = nvml::reason_hardware_slowdown | nvml::reason_sync_boost |
                                  nvml::reason_software_thermal | nvml::reason_hardware_thermal |
                                  nvml::reason_hardware_power_brake;
  return (throttle_reasons & slowed) != 0;
}

Result<GpuMonitor> GpuMonitor::open(const std::string& uuid) {
  Result<DynamicLibrary> library = open_nvml();
  if (!library) return library.error();
  auto state = std::make_shared<State>();
  nvml::HandleByUuid* by_uuid = nullptr;
  if (!library->load("nvmlDeviceGetHandleByUUID", by_uuid) ||
      !library->load("nvmlDeviceGetClockInfo", state->clock) ||
      !library->load("nvmlDeviceGetTemperature", state->temperature) ||
      !library->load("nvmlDeviceGetPowerUsage", state->power) ||
      !library->load("nvmlDeviceGetCurrentClocksThrottleReasons", state->reasons)) {
    return Error{library->path() + " lacks a function that it should have"};
  }
  if (by_uuid(nvml_uuid(uuid).c_str(), &state->device) != nvml::success) {
    return Error{"NVML does not know the GPU " + nvml_uuid(uuid)};
  }
  GpuMonitor monitor;
  monitor.state_ = std::move(state);
  return monitor;
}

GpuReading GpuMonitor::read() const {
  // A value that a board does not report stays 0.
  GpuReading reading;
  unsigned value = 0;
  if (state_->clock(state_->device, nvml::clock_sm, &value) == nvml::success) {
    reading.sm_clock_mhz = static_cast<int>(value);
  }
  if (state_->temperature(state_->device, nvml::temperature_gpu, &value) == nvml::success) {
    reading.temperature_c = static_cast<int>(value);
  }
  if (state_->power(state_->device, &value) == nvml::success) {
    reading.power_w = static_cast<int>(value / 1000);
  }
  unsigned long long reasons = 0;
  if (state_->reasons(state_->device, &reasons) == nvml::success) {
    reading.throttle_reasons = static_cast<std::int64_t>(reasons) & ~nvml::reason_idle;
  }
  return reading;
}

Result<std::string> driver_version_text() {
  Result<DynamicLibrary> library = open_nvml();
  if (!library) return library.error();
  nvml::SystemDriverVersion* version = nullptr;
  char text[96] = {};
  if (!library->load("nvmlSystemGetDriverVersion", version) ||
      version(text, sizeof text) != nvml::success) {
    return Error{"NVML does not tell the driver's version"};
  }
  return std::string(text);
}

}  // namespace rekernel
