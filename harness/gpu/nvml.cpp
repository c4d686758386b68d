#include "harness/gpu/nvml.h"

#include <algorithm>
#include <cstring>

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
using RunningProcesses = int(Device, unsigned* count, void* processes);
using ErrorString = const char*(int);
using HandleByIndex = int(unsigned, Device*);
using Uuid = int(Device, char*, unsigned);
using Capability = int(Device, int* major, int* minor);
using Count = int(unsigned*);
using Name = int(Device, char*, unsigned);
using MinorNumber = int(Device, unsigned*);
using MigMode = int(Device, unsigned* present, unsigned* pending);

constexpr int success = 0;
constexpr int insufficient_size = 7;
constexpr int clock_sm = 1;
constexpr int temperature_gpu = 0;
constexpr std::int64_t reason_idle = 0x1;
constexpr std::int64_t reason_hardware_slowdown = 0x8;
constexpr std::int64_t reason_sync_boost = 0x10;
constexpr std::int64_t reason_software_thermal = 0x20;
constexpr std::int64_t reason_hardware_thermal = 0x40;
constexpr std::int64_t reason_hardware_power_brake = 0x80;

/// How an entry of a list of processes begins. More follows, and how much depends on the driver:
/// 535 lengthened the entries of a function and kept its name.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;
};
static_assert(sizeof(ProcessInfo) == 16);
constexpr std::size_t entry_sizes[] = {16, 24, 32};
constexpr unsigned long long not_available = ~0ull;
}  // namespace nvml

struct GpuMonitor::State {
  nvml::Device device = nullptr;
  nvml::ClockInfo* clock = nullptr;
  nvml::Temperature* temperature = nullptr;
  nvml::PowerUsage* power = nullptr;
  nvml::ThrottleReasons* reasons = nullptr;
  nvml::ErrorString* error_string = nullptr;
  // Null where the driver is older than they are.
  nvml::RunningProcesses* compute = nullptr;
  nvml::RunningProcesses* mps_clients = nullptr;
  nvml::RunningProcesses* graphics = nullptr;
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

/// What one of NVML's lists holds, or NVML's error.
struct ProcessList {
  int status = nvml::success;
  bool readable = true;
  std::vector<nvml::ProcessInfo> processes;
};

/// How long the entries are that a driver wrote over bytes of `untouched`; 0 if that cannot be
/// told. An entry ends with a number that is never made of such bytes.
std::size_t entry_size(const std::vector<unsigned char>& bytes, unsigned char untouched,
                       std::size_t entries) {
  const auto written = std::find_if(bytes.rbegin(), bytes.rend(),
                                    [&](unsigned char byte) { return byte != untouched; });
  const auto length = static_cast<std::size_t>(bytes.rend() - written);
  for (const std::size_t size : nvml::entry_sizes) {
    if (length == entries * size) return size;
  }
  return 0;
}

ProcessList list_processes(nvml::RunningProcesses* list, nvml::Device device) {
  constexpr unsigned char untouched = 0xA5;
  constexpr std::size_t largest = nvml::entry_sizes[2];
  ProcessList result;
  unsigned room = 64;
  for (int tries = 0; tries < 4; ++tries) {
    unsigned count = room;
    std::vector<unsigned char> bytes(room * largest, untouched);
    result.status = list(device, &count, bytes.data());
    if (result.status == nvml::insufficient_size) {
      room = std::min(count, 1u << 16) + 64;  // some may start meanwhile
      continue;
    }
    if (result.status != nvml::success || count == 0) return result;
    const std::size_t size = count <= room ? entry_size(bytes, untouched, count) : 0;
    result.readable = size != 0;
    for (std::size_t i = 0; size != 0 && i < count; ++i) {
      std::memcpy(&result.processes.emplace_back(), bytes.data() + i * size,
                  sizeof(nvml::ProcessInfo));
    }
    return result;
  }
  return result;
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
  library->load("nvmlErrorString", state->error_string);
  library->load("nvmlDeviceGetComputeRunningProcesses_v3", state->compute);
  library->load("nvmlDeviceGetMPSComputeRunningProcesses_v3", state->mps_clients);
  library->load("nvmlDeviceGetGraphicsRunningProcesses_v3", state->graphics);
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

Result<std::vector<GpuContext>> GpuMonitor::contexts() const {
  using Kind = GpuContext::Kind;
  std::vector<GpuContext> result;
  for (const auto& [list, kind] :
       {std::pair(state_->compute, Kind::compute), std::pair(state_->mps_clients, Kind::mps_client),
        std::pair(state_->graphics, Kind::graphics)}) {
    if (!list) {
      if (kind == Kind::compute) return Error{"the driver's NVML is too old to list processes"};
      continue;
    }
    const ProcessList found = list_processes(list, state_->device);
    if (found.status != nvml::success && kind == Kind::compute) {
      return Error{"NVML does not list the GPU's processes: " +
                   (state_->error_string ? std::string(state_->error_string(found.status))
                                         : "error " + std::to_string(found.status))};
    }
    if (!found.readable) return Error{"NVML lists the GPU's processes in an unknown form"};
    for (const nvml::ProcessInfo& info : found.processes) {
      GpuContext context{static_cast<int>(info.pid), kind, std::nullopt};
      if (info.used_gpu_memory != nvml::not_available) {
        context.memory_bytes = static_cast<std::int64_t>(info.used_gpu_memory);
      }
      result.push_back(context);
    }
  }
  return result;
}

namespace {

/// Boards that cannot be divided have no mode.
bool is_divided(const DynamicLibrary& library, nvml::Device device) {
  nvml::MigMode* mig_mode = nullptr;
  unsigned divided = 0;
  unsigned pending = 0;
  if (library.load("nvmlDeviceGetMigMode", mig_mode)) mig_mode(device, &divided, &pending);
  return divided != 0;
}

Result<GpuIdentity> identity_of(const DynamicLibrary& library, nvml::Device device) {
  nvml::Uuid* uuid = nullptr;
  nvml::Capability* capability = nullptr;
  nvml::Name* name = nullptr;
  nvml::MinorNumber* minor_number = nullptr;
  char text[96] = {};
  char title[96] = {};
  GpuIdentity identity;
  if (is_divided(library, device) || !library.load("nvmlDeviceGetUUID", uuid) ||
      !library.load("nvmlDeviceGetName", name) ||
      name(device, title, sizeof title) != nvml::success ||
      !library.load("nvmlDeviceGetCudaComputeCapability", capability) ||
      uuid(device, text, sizeof text) != nvml::success ||
      capability(device, &identity.capability.major, &identity.capability.minor) != nvml::success) {
    return Error{"NVML does not tell what CUDA calls the GPU"};
  }
  identity.name = title;
  identity.visible = text;
  identity.uuid = identity.visible.substr(std::strlen("GPU-"));
  std::erase(identity.uuid, '-');
  unsigned number = 0;
  if (library.load("nvmlDeviceGetMinorNumber", minor_number) &&
      minor_number(device, &number) == nvml::success) {
    identity.file = "/dev/nvidia" + std::to_string(number);
  }
  return identity;
}

}  // namespace

Result<GpuIdentity> nvml_identity(const std::string& uuid) {
  const Result<DynamicLibrary> library = open_nvml();
  if (!library) return library.error();
  nvml::HandleByUuid* by_uuid = nullptr;
  nvml::Device device = nullptr;
  if (!library->load("nvmlDeviceGetHandleByUUID", by_uuid) ||
      by_uuid(uuid.c_str(), &device) != nvml::success) {
    return Error{"NVML does not know the GPU " + uuid};
  }
  return identity_of(*library, device);
}

Result<GpuIdentity> nvml_identity(unsigned index) {
  const Result<DynamicLibrary> library = open_nvml();
  if (!library) return library.error();
  nvml::HandleByIndex* by_index = nullptr;
  nvml::Device device = nullptr;
  if (!library->load("nvmlDeviceGetHandleByIndex_v2", by_index)) {
    return Error{library->path() + " lacks a function that it should have"};
  }
  // CUDA counts the instances of a divided GPU that comes before.
  for (unsigned number = 0; number <= index; ++number) {
    if (by_index(number, &device) != nvml::success || is_divided(*library, device)) {
      return Error{"NVML does not know the GPU " + std::to_string(index)};
    }
  }
  return identity_of(*library, device);
}

Result<int> nvml_gpu_count() {
  const Result<DynamicLibrary> library = open_nvml();
  if (!library) return library.error();
  nvml::Count* count = nullptr;
  unsigned gpus = 0;
  if (!library->load("nvmlDeviceGetCount_v2", count) || count(&gpus) != nvml::success ||
      gpus == 0) {
    return Error{"NVML knows no GPU"};
  }
  return static_cast<int>(gpus);
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
