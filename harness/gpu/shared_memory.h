#pragma once

#include <atomic>
#include <cstdint>

#include "harness/base/file_descriptor.h"
#include "harness/gpu/cuda.h"
#include "ops/result.h"

namespace rekernel {

/// Error unless the current device can lend memory to other processes: virtual memory management
/// with file descriptors as handles, and waits of a stream for a word in memory.
Result<Ok> check_memory_sharing(int ordinal);

struct ReleaseAllocation {
  void operator()(CUmemGenericAllocationHandle handle) const;
};

/// Physical device memory without an address, which this process may lend to others.
class DeviceAllocation : public CudaHandle<CUmemGenericAllocationHandle, ReleaseAllocation> {
 public:
  /// At least `bytes`, rounded up to whole pages of the device. Throws CudaError when memory is
  /// short.
  static DeviceAllocation create(std::int64_t bytes);
  /// What another process lent.
  static DeviceAllocation import(const FileDescriptor& lent, std::int64_t bytes);
  FileDescriptor lend() const;
  std::int64_t bytes() const { return bytes_; }

 private:
  DeviceAllocation(CUmemGenericAllocationHandle handle, std::int64_t bytes)
      : CudaHandle(handle), bytes_(bytes) {}
  std::int64_t bytes_ = 0;
};

enum class Access { read, read_and_write };

/// An allocation at an address of this process, between two pages that are never mapped: an access
/// beyond either end faults, and so does a write where only reading is allowed.
class DeviceMapping {
 public:
  DeviceMapping(const DeviceAllocation& allocation, Access access);
  DeviceMapping(DeviceMapping&& other) noexcept
      : begin_(std::exchange(other.begin_, 0)), bytes_(other.bytes_) {}
  DeviceMapping& operator=(DeviceMapping&&) = delete;
  ~DeviceMapping();
  CUdeviceptr begin() const { return begin_; }

 private:
  CUdeviceptr begin_ = 0;
  std::int64_t bytes_ = 0;
};

/// A page of host memory that two processes and the streams of both write words into.
class WordPage {
 public:
  /// The memory of a page, for both processes to open.
  static Result<FileDescriptor> create();
  /// Maps it and makes it known to the current context.
  explicit WordPage(const FileDescriptor& memory);
  WordPage(const WordPage&) = delete;
  WordPage& operator=(const WordPage&) = delete;
  ~WordPage();

  /// Word numbers: what lets a plan begin, and what says that it has ended.
  static constexpr std::size_t go = 0;
  static constexpr std::size_t done = 16;  ///< not in the same cache line
  std::atomic<std::uint32_t>& word(std::size_t number) { return words_[number]; }
  CUdeviceptr address(std::size_t number) const {
    return device_address_ + number * sizeof(std::uint32_t);
  }

 private:
  std::atomic<std::uint32_t>* words_ = nullptr;
  CUdeviceptr device_address_ = 0;
};

/// The stream waits until a word has a value; the host may write it, or another stream.
void wait_for_word(const Stream& stream, CUdeviceptr word, std::uint32_t value);
void write_word(const Stream& stream, CUdeviceptr word, std::uint32_t value);

}  // namespace rekernel
