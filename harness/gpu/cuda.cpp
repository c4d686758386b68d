#include "harness/gpu/cuda.h"

#include <array>
#include <cmath>
#include <mutex>
#include <utility>

namespace rekernel {

namespace {

Result<DriverApi> resolve_driver() {
  Result<DynamicLibrary> library = DynamicLibrary::open({"libcuda.so.1"});
  if (!library) return Error{"no NVIDIA driver: " + library.error().message};
  DriverApi api;
  std::string missing;
  // Two levels, so that names that cuda.h maps to versioned symbols (cuMemAlloc_v2) are expanded.
#define REKERNEL_LOAD_SYMBOL(symbol) \
  if (!library->load(#symbol, *&api.symbol) && missing.empty()) missing = #symbol;
#define REKERNEL_LOAD(name) REKERNEL_LOAD_SYMBOL(name)
  REKERNEL_DRIVER_FUNCTIONS(REKERNEL_LOAD)
#undef REKERNEL_LOAD
#undef REKERNEL_LOAD_SYMBOL
  if (!missing.empty()) {
    return Error{"the NVIDIA driver (" + library->path() + ") is too old: it has no " + missing +
                 ", which CUDA 12.4 brought"};
  }
  return api;
}

std::string describe(CUresult code) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().cuGetErrorName(code, &name);
  driver().cuGetErrorString(code, &text);
  return std::string(name ? name : "unknown CUDA error") + (text ? std::string(": ") + text : "");
}

int device_attribute(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  REKERNEL_CUDA(cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

ComputeCapability capability_of(CUdevice device) {
  return {device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
          device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
}

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  REKERNEL_CUDA(cuDeviceGetUuid(&uuid, device));
  std::string text;
  for (unsigned char byte : uuid.bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

DeviceProperties read_properties(CUdevice device) {
  DeviceProperties properties;
  char name[256] = {};
  REKERNEL_CUDA(cuDeviceGetName(name, sizeof name, device));
  properties.name = name;

  properties.uuid = uuid_of(device);

  std::size_t memory = 0;
  REKERNEL_CUDA(cuDeviceTotalMem(&memory, device));
  properties.memory_bytes = static_cast<std::int64_t>(memory);
  properties.major = capability_of(device).major;
  properties.minor = capability_of(device).minor;
  properties.multiprocessors = device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.l2_bytes = device_attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  properties.shared_bytes_per_block =
      device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  properties.clock_khz = device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties.memory_clock_khz = device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  properties.memory_bus_bits =
      device_attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  REKERNEL_CUDA(cuDriverGetVersion(&properties.driver_version));
  return properties;
}

}  // namespace

CudaError::CudaError(CUresult code, const std::string& call)
    : std::runtime_error(call + ": " + describe(code)), code_(code) {}

Result<const DriverApi*> load_driver() {
  static const Result<DriverApi> api = resolve_driver();
  if (!api) return api.error();
  return &api.value();
}

const DriverApi& driver() {
  static const DriverApi* const api = [] {
    Result<const DriverApi*> loaded = load_driver();
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return *loaded;
  }();
  return *api;
}

void cuda_check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw CudaError(result, std::string(call).substr(0, 64));
}

void check_allocation(CUresult result, std::int64_t bytes) {
  if (result == CUDA_SUCCESS) return;
  constexpr int mebibyte_bits = 20;
  const auto mebibytes = [](std::size_t count) {
    return std::to_string((count + (1u << mebibyte_bits) - 1) >> mebibyte_bits) + " MiB";
  };
  std::string text = "an allocation of " + mebibytes(static_cast<std::size_t>(bytes));
  std::size_t free = 0;
  std::size_t total = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS) {
    text += ", with " + mebibytes(free) + " of the GPU's " + mebibytes(total) +
            " free (nvidia-smi shows who holds the rest)";
  }
  throw CudaError(result, text);
}

namespace {

Result<CUdevice> find_device(int ordinal) {
  Result<const DriverApi*> api = load_driver();
  if (!api) return api.error();
  if (CUresult result = driver().cuInit(0); result != CUDA_SUCCESS) {
    return Error{"no usable GPU: cuInit: " + describe(result)};
  }
  int count = 0;
  REKERNEL_CUDA(cuDeviceGetCount(&count));
  if (ordinal < 0 || ordinal >= count) {
    return Error{"GPU " + std::to_string(ordinal) + ": expected 0 to " + std::to_string(count - 1) +
                 ", this machine has " + std::to_string(count)};
  }
  CUdevice device = 0;
  REKERNEL_CUDA(cuDeviceGet(&device, ordinal));
  return device;
}

}  // namespace

Result<GpuIdentity> cuda_identity(int ordinal) {
  const Result<CUdevice> device = find_device(ordinal);
  if (!device) return device.error();
  std::array<char, 256> name{};
  REKERNEL_CUDA(cuDeviceGetName(name.data(), name.size(), *device));
  return GpuIdentity{
      name.data(), uuid_of(*device), capability_of(*device), visible_alone(ordinal), {}};
}

Result<bool> reaches_host_memory(int ordinal) {
  const Result<CUdevice> device = find_device(ordinal);
  if (!device) return device.error();
  return device_attribute(*device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
}

Result<Device> Device::open(int ordinal) {
  const Result<CUdevice> found = find_device(ordinal);
  if (!found) return found.error();
  Device device;
  device.handle_ = *found;
  CUcontext context = nullptr;
  REKERNEL_CUDA(cuDevicePrimaryCtxRetain(&context, device.handle_));
  device.context_ = std::shared_ptr<CUctx_st>(context, [handle = device.handle_](CUctx_st*) {
    driver().cuDevicePrimaryCtxRelease(handle);
  });
  device.make_current();
  device.properties_ = read_properties(device.handle_);
  return device;
}

void Device::make_current() const { REKERNEL_CUDA(cuCtxSetCurrent(context_.get())); }

void ReleaseStream::operator()(CUstream handle) const { driver().cuStreamDestroy(handle); }
void ReleaseEvent::operator()(CUevent handle) const { driver().cuEventDestroy(handle); }
void ReleaseModule::operator()(CUmodule handle) const { driver().cuModuleUnload(handle); }
void ReleaseMemory::operator()(CUdeviceptr handle) const { driver().cuMemFree(handle); }

namespace {

CUstream create_stream() {
  CUstream handle = nullptr;
  REKERNEL_CUDA(cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING));
  return handle;
}

CUevent create_event() {
  CUevent handle = nullptr;
  REKERNEL_CUDA(cuEventCreate(&handle, CU_EVENT_DEFAULT));
  return handle;
}

CUmodule load_module(const std::string& cubin) {
  CUmodule handle = nullptr;
  REKERNEL_CUDA(cuModuleLoadData(&handle, cubin.data()));
  return handle;
}

CUdeviceptr allocate(std::int64_t bytes) {
  CUdeviceptr handle = 0;
  check_allocation(driver().cuMemAlloc(&handle, static_cast<std::size_t>(bytes)), bytes);
  return handle;
}

}  // namespace

Stream::Stream() : CudaHandle(create_stream()) {}
void Stream::synchronize() const { REKERNEL_CUDA(cuStreamSynchronize(get())); }

Event::Event() : CudaHandle(create_event()) {}
void Event::record(const Stream& stream) const {
  REKERNEL_CUDA(cuEventRecord(get(), stream.get()));
}

std::int64_t elapsed_ns(const Event& start, const Event& stop) {
  REKERNEL_CUDA(cuEventSynchronize(stop.get()));
  float milliseconds = 0;
  REKERNEL_CUDA(cuEventElapsedTime(&milliseconds, start.get(), stop.get()));
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

Module::Module(const std::string& cubin) : CudaHandle(load_module(cubin)) {}

CUfunction Module::function(const std::string& name) const {
  CUfunction function = nullptr;
  REKERNEL_CUDA(cuModuleGetFunction(&function, get(), name.c_str()));
  return function;
}

DeviceBuffer::DeviceBuffer(std::int64_t bytes) : CudaHandle(allocate(bytes)), bytes_(bytes) {}

}  // namespace rekernel
