// A library that stands in for NVML, for what a GPU would be needed for otherwise.

#include "fake_nvml.h"

#include <cstring>

extern "C" {

FakeNvmlLists* fake_nvml_lists() {
  static FakeNvmlLists lists;
  return &lists;
}

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = nullptr;
  return fake_nvml_lists()->uuid == uuid ? 0 : 6;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = fake_nvml_lists()->gpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = nullptr;
  return index < fake_nvml_lists()->gpus ? 0 : 2;
}
int nvmlDeviceGetUUID(void*, char* uuid, unsigned length) {
  const std::string& own = fake_nvml_lists()->uuid;
  if (length <= own.size()) return 7;
  std::strcpy(uuid, own.c_str());
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  if (length < sizeof "NVIDIA Test") return 7;
  std::strcpy(name, "NVIDIA Test");
  return 0;
}
int nvmlDeviceGetMinorNumber(void*, unsigned* number) {
  *number = 5;
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* present, unsigned* pending) {
  *present = *pending = fake_nvml_lists()->divided ? 1 : 0;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned*) { return 3; }
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }
int nvmlDeviceGetPowerUsage(void*, unsigned*) { return 3; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long*) { return 3; }
const char* nvmlErrorString(int status) { return status == 3 ? "Not Supported" : "Unknown Error"; }

}  // extern "C"

namespace {

int answer(const FakeNvmlList& list, unsigned* count, void* entries) {
  if (list.status != 0) return list.status;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.processes.size());
  if (*count > room) return 7;
  auto* bytes = static_cast<unsigned char*>(entries);
  for (const FakeNvmlList::Process& process : list.processes) {
    // Two numbers of 32 bits follow in entries of 24 bytes, one more of 64 bits in those of 32.
    std::memset(bytes, 0xff, list.entry_size);
    if (list.entry_size == 32) std::memset(bytes + 24, 0, 8);
    std::memcpy(bytes, &process.pid, 4);
    std::memcpy(bytes + 8, &process.memory, 8);
    bytes += list.entry_size;
  }
  return 0;
}

}  // namespace

extern "C" {

int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* entries) {
  return answer(fake_nvml_lists()->compute, count, entries);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void*, unsigned* count, void* entries) {
  return answer(fake_nvml_lists()->mps_clients, count, entries);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, void* entries) {
  return answer(fake_nvml_lists()->graphics, count, entries);
}

}  // extern "C"
