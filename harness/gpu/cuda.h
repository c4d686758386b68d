#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/gpu/capability.h"
#include "harness/gpu/identity.h"
#include "harness/gpu/library.h"
#include "ops/result.h"

namespace rekernel {

/// A CUDA call failed. Inside a candidate's process this is that candidate's failure; anywhere else
/// it is a defect.
class CudaError : public std::runtime_error {
 public:
  CudaError(CUresult code, const std::string& call);
  CUresult code() const { return code_; }

 private:
  CUresult code_;
};

/// The driver API, loaded at run time: the program starts on machines without a driver. Members
/// carry the API's own names, so that a call reads `driver().cuMemAlloc(…)`.
struct DriverApi {
// clang-format off
#define REKERNEL_DRIVER_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) \
  X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetUuid) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
  X(cuCtxResetPersistingL2Cache) X(cuGetErrorName) X(cuGetErrorString) X(cuMemAlloc) \
  X(cuMemFree) X(cuMemGetInfo) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoDAsync) \
  X(cuMemsetD8Async) X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) \
  X(cuEventElapsedTime) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) \
  X(cuFuncSetAttribute) X(cuFuncGetAttribute) X(cuLaunchKernelEx) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuTensorMapEncodeTiled) \
  X(cuCtxGetDevice) X(cuMemGetAllocationGranularity) X(cuMemCreate) X(cuMemRelease) \
  X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) X(cuMemAddressReserve) \
  X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemHostRegister) X(cuMemHostUnregister) \
  X(cuMemHostGetDevicePointer) X(cuStreamWaitValue32) X(cuStreamWriteValue32)
// clang-format on
#define REKERNEL_DECLARE(name) decltype(&::name) name = nullptr;
  REKERNEL_DRIVER_FUNCTIONS(REKERNEL_DECLARE)
#undef REKERNEL_DECLARE
};

/// Loads the driver on first use. An error says that there is no driver or that it is too old.
Result<const DriverApi*> load_driver();
/// The loaded driver; only after load_driver() has succeeded.
const DriverApi& driver();

void cuda_check(CUresult result, const char* call);
/// After an allocation in the current context: where memory is short, the error says how much was
/// asked for and how much is free.
void check_allocation(CUresult result, std::int64_t bytes);
#define REKERNEL_CUDA(call) ::rekernel::cuda_check(::rekernel::driver().call, #call)

/// What the harness and the reports need to know of a GPU.
struct DeviceProperties {
  std::string name;
  std::string uuid;
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  ///< the opt-in limit
  std::int64_t clock_khz = 0;               ///< highest multiprocessor clock
  std::int64_t memory_clock_khz = 0;        ///< highest; two transfers a clock
  std::int64_t memory_bus_bits = 0;
  int driver_version = 0;  ///< 13000 for 13.0
};

/// Identity of the GPU with this number for CUDA, without a context on it; identify_gpu takes less
/// time.
Result<GpuIdentity> cuda_identity(int ordinal);

/// Whether kernels on a device can address all host memory of their process (HMM, ATS).
Result<bool> reaches_host_memory(int ordinal);

/// A device with its primary context made current in the calling thread (shared with cuBLAS and
/// cuDNN).
class Device {
 public:
  static Result<Device> open(int ordinal = 0);
  const DeviceProperties& properties() const { return properties_; }
  void make_current() const;
  /// What a library keeps as long as the context is open, by the library's name; null at first.
  std::shared_ptr<void>& kept(const std::string& library) const { return (*kept_)[library]; }

 private:
  using Kept = std::map<std::string, std::shared_ptr<void>>;

  CUdevice handle_ = 0;
  std::shared_ptr<CUctx_st> context_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();  ///< goes before the context
  DeviceProperties properties_;
};

/// An owning handle. Release failures are ignored: they follow from an earlier error that was
/// reported.
template <class Handle, class Release>
class CudaHandle {
 public:
  CudaHandle() = default;
  explicit CudaHandle(Handle handle) : handle_(handle) {}
  CudaHandle(CudaHandle&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  CudaHandle& operator=(CudaHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaHandle() {
    if (handle_) Release{}(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

struct ReleaseStream {
  void operator()(CUstream handle) const;
};
struct ReleaseEvent {
  void operator()(CUevent handle) const;
};
struct ReleaseModule {
  void operator()(CUmodule handle) const;
};
struct ReleaseMemory {
  void operator()(CUdeviceptr handle) const;
};

class Stream : public CudaHandle<CUstream, ReleaseStream> {
 public:
  Stream();
  void synchronize() const;
};

class Event : public CudaHandle<CUevent, ReleaseEvent> {
 public:
  Event();
  void record(const Stream& stream) const;
};

/// Time between two recorded events, after waiting for the second; nanoseconds.
std::int64_t elapsed_ns(const Event& start, const Event& stop);

class Module : public CudaHandle<CUmodule, ReleaseModule> {
 public:
  explicit Module(const std::string& cubin);
  CUfunction function(const std::string& name) const;
};

/// Plain device memory, uninitialised.
class DeviceBuffer : public CudaHandle<CUdeviceptr, ReleaseMemory> {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t bytes);  ///< throws CudaError when memory is short
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace rekernel
