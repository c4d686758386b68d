#include "harness/gpu/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rekernel {

namespace {

constexpr std::size_t page_bytes = 4096;

CUdevice current_device() {
  CUdevice device = 0;
  REKERNEL_CUDA(cuCtxGetDevice(&device));
  return device;
}

CUmemAllocationProp properties_of_memory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = current_device();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

std::size_t granularity() {
  const CUmemAllocationProp properties = properties_of_memory();
  std::size_t bytes = 0;
  REKERNEL_CUDA(
      cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  return bytes;
}

}  // namespace

Result<Ok> check_memory_sharing(int ordinal) {
  CUdevice device = 0;
  REKERNEL_CUDA(cuDeviceGet(&device, ordinal));
  const std::pair<CUdevice_attribute, const char*> needed[] = {
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
       "device memory that file descriptors stand for"},
  };
  for (const auto& [attribute, what] : needed) {
    int supported = 0;
    REKERNEL_CUDA(cuDeviceGetAttribute(&supported, attribute, device));
    if (!supported) {
      return Error{
          "GPU " + std::to_string(ordinal) + " or its driver has no " + what +
          ", by which inputs reach a candidate's process: expected Linux, a GPU of compute "
          "capability 8.0 or newer, and its own driver"};
    }
  }
  return Ok{};
}

void ReleaseAllocation::operator()(CUmemGenericAllocationHandle handle) const {
  driver().cuMemRelease(handle);
}

DeviceAllocation DeviceAllocation::create(std::int64_t bytes) {
  const CUmemAllocationProp properties = properties_of_memory();
  const auto page = static_cast<std::int64_t>(granularity());
  const std::int64_t rounded = (bytes + page - 1) / page * page;
  CUmemGenericAllocationHandle handle = 0;
  check_allocation(driver().cuMemCreate(&handle, static_cast<std::size_t>(rounded), &properties, 0),
                   rounded);
  return {handle, rounded};
}

DeviceAllocation DeviceAllocation::import(const FileDescriptor& lent, std::int64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  REKERNEL_CUDA(cuMemImportFromShareableHandle(
      &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(lent.get())),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return {handle, bytes};
}

FileDescriptor DeviceAllocation::lend() const {
  int descriptor = -1;
  REKERNEL_CUDA(cuMemExportToShareableHandle(&descriptor, get(),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return FileDescriptor(descriptor);
}

DeviceMapping::DeviceMapping(const DeviceAllocation& allocation, Access access)
    : bytes_(allocation.bytes()) {
  const std::size_t page = granularity();
  const auto size = static_cast<std::size_t>(bytes_);
  CUdeviceptr reserved = 0;
  REKERNEL_CUDA(cuMemAddressReserve(&reserved, size + 2 * page, page, 0, 0));
  begin_ = reserved + page;
  REKERNEL_CUDA(cuMemMap(begin_, size, 0, allocation.get(), 0));
  CUmemAccessDesc description{};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = current_device();
  description.flags =
      access == Access::read ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  REKERNEL_CUDA(cuMemSetAccess(begin_, size, &description, 1));
}

DeviceMapping::~DeviceMapping() {
  if (begin_ == 0) return;
  // The reserved addresses are not given back: nothing else may ever come to lie there while a
  // stray pointer might still be about.
  driver().cuMemUnmap(begin_, static_cast<std::size_t>(bytes_));
}

Result<FileDescriptor> WordPage::create() {
  FileDescriptor memory(::memfd_create("rekernel-words", MFD_CLOEXEC));
  if (!memory.is_open() || ::ftruncate(memory.get(), page_bytes) != 0) {
    return Error{std::string("cannot make shared memory: ") + std::strerror(errno)};
  }
  return memory;
}

WordPage::WordPage(const FileDescriptor& memory) {
  void* mapped = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) {
    throw std::runtime_error(std::string("cannot map shared memory: ") + std::strerror(errno));
  }
  words_ = static_cast<std::atomic<std::uint32_t>*>(mapped);
  REKERNEL_CUDA(cuMemHostRegister(mapped, page_bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  REKERNEL_CUDA(cuMemHostGetDevicePointer(&device_address_, mapped, 0));
}

WordPage::~WordPage() {
  driver().cuMemHostUnregister(words_);
  ::munmap(words_, page_bytes);
}

void wait_for_word(const Stream& stream, CUdeviceptr word, std::uint32_t value) {
  REKERNEL_CUDA(cuStreamWaitValue32(stream.get(), word, value, CU_STREAM_WAIT_VALUE_EQ));
}

void write_word(const Stream& stream, CUdeviceptr word, std::uint32_t value) {
  REKERNEL_CUDA(cuStreamWriteValue32(stream.get(), word, value, CU_STREAM_WRITE_VALUE_DEFAULT));
}

}  // namespace rekernel
