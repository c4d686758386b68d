#include "harness/capture/recorder_marks.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace rekernel_recorder {
namespace {

constexpr int warm_up_calls = 1;
constexpr int recorded_calls = 2;
/// Writes of the cache before a timed call: the device is busy with them for a millisecond or two,
/// which is longer than the host takes to issue the work.
constexpr int flushes = 40;

struct Driver {
  decltype(&::cuMemAlloc_v2) allocate = nullptr;
  decltype(&::cuMemsetD8Async) fill = nullptr;
  decltype(&::cuEventCreate) create_event = nullptr;
  decltype(&::cuEventRecord) record_event = nullptr;
  decltype(&::cuEventSynchronize) wait_for_event = nullptr;
  CUresult (*elapsed_time)(float*, CUevent, CUevent) = nullptr;
  decltype(&::cuCtxSynchronize) wait = nullptr;
  decltype(&::cuCtxGetDevice) device = nullptr;
  decltype(&::cuDeviceGetAttribute) attribute = nullptr;

  bool load();
};

bool Driver::load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return false;
  const auto find = [&](const char* name, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  return find("cuMemAlloc_v2", allocate) && find("cuMemsetD8Async", fill) &&
         find("cuEventCreate", create_event) && find("cuEventRecord", record_event) &&
         find("cuEventSynchronize", wait_for_event) && find("cuEventElapsedTime", elapsed_time) &&
         find("cuCtxSynchronize", wait) && find("cuCtxGetDevice", device) &&
         find("cuDeviceGetAttribute", attribute);
}

using Clock = std::chrono::steady_clock;

enum class Part { none, recorded, whole_call, device_work };

/// One for the process. A program marks its work from one thread; the plan maker refuses recordings
/// of several.
struct Marks {
  MarkServices services;
  Driver driver;
  bool on = false;
  bool can_time = false;  ///< the driver is there
  int samples = 0;
  int calls = 0;           ///< begun so far
  Part part = Part::none;  ///< what the call that is running is for
  int works = 0;           ///< calls that work on the device, in a recorded call
  int works_so_far = 0;    ///< the same, in this call
  CUdeviceptr flush = 0;
  std::size_t flush_bytes = 0;
  CUevent start = nullptr;
  CUevent stop = nullptr;
  bool stopped = false;
  Clock::time_point begun;
};
Marks marks;

/// What a note may hold without quoting.
std::string plain(const char* name) {
  std::string text = std::string(std::string_view(name).substr(0, 64));
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c < 0x20 || c > 0x7e || c == '"' || c == '\\'; }, '?');
  return text;
}

std::string call_number() {
  return "{\"call\":" + std::to_string(marks.calls - warm_up_calls) + ",";
}

bool prepare_timing() {
  if (marks.flush != 0) return true;
  CUdevice device = 0;
  int cache_bytes = 0;
  const Driver& driver = marks.driver;
  if (driver.device(&device) != CUDA_SUCCESS ||
      driver.attribute(&cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) != CUDA_SUCCESS ||
      driver.create_event(&marks.start, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
      driver.create_event(&marks.stop, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    return false;
  }
  marks.flush_bytes = 2 * static_cast<std::size_t>(cache_bytes) + (std::size_t{1} << 20);
  return driver.allocate(&marks.flush, marks.flush_bytes) == CUDA_SUCCESS;
}

void flush_cache(CUstream stream, int times) {
  for (int i = 0; i < times; ++i) marks.driver.fill(marks.flush, 1, marks.flush_bytes, stream);
}

Part part_of_call() {
  const int timed = marks.calls - warm_up_calls - recorded_calls;
  if (marks.calls <= warm_up_calls) return Part::none;
  if (timed <= 0) return Part::recorded;
  if (timed > 2 * marks.samples || !marks.can_time || !prepare_timing()) return Part::none;
  return timed % 2 == 1 ? Part::device_work : Part::whole_call;
}

void begin_recorded(const char* name, std::va_list rest) {
  std::string tensors;
  while (name) {
    const auto address = reinterpret_cast<std::uint64_t>(va_arg(rest, const void*));
    tensors += (tensors.empty() ? "\"" : ",\"") + plain(name) + "\":[" + std::to_string(address) +
               "," + std::to_string(marks.services.bytes_from(address)) + "]";
    name = va_arg(rest, const char*);
  }
  marks.services.write_note(call_number() + "\"tensors\":{" + tensors + "}}");
  marks.works = 0;
  marks.services.record(true);
}

void end_device_work() {
  float milliseconds = 0;
  if (!marks.stopped || marks.driver.wait_for_event(marks.stop) != CUDA_SUCCESS ||
      marks.driver.elapsed_time(&milliseconds, marks.start, marks.stop) != CUDA_SUCCESS) {
    return;
  }
  constexpr double nanoseconds = 1e6;
  marks.services.write_time(true, static_cast<std::int64_t>(milliseconds * nanoseconds));
}

void end_whole_call() {
  marks.driver.wait();
  const auto time =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - marks.begun);
  marks.services.write_time(false, time.count());
}

}  // namespace

void start_marks(const MarkServices& services, int samples) {
  marks.services = services;
  marks.samples = samples;
  marks.on = true;
  marks.can_time = marks.driver.load();
}

bool marks_are_on() { return marks.on; }

int marked_calls() {
  if (!marks.on) {
    // A program may ask before CUDA has loaded the recorder, which is then still to come.
    const char* samples = std::getenv("REKERNEL_CAPTURE_MARKS");
    return samples ? warm_up_calls + recorded_calls + 2 * std::atoi(samples) : 1;
  }
  return warm_up_calls + recorded_calls + (marks.can_time ? 2 * marks.samples : 0);
}

void mark_begin(const char* first_name, std::va_list pointers_and_names) {
  ++marks.calls;
  marks.works_so_far = 0;
  marks.stopped = false;
  marks.part = part_of_call();
  if (marks.part == Part::recorded) {
    begin_recorded(first_name, pointers_and_names);
  } else if (marks.part == Part::whole_call) {
    flush_cache(nullptr, 1);
    marks.driver.wait();
    marks.begun = Clock::now();
  }
}

void mark_end() {
  switch (marks.part) {
    case Part::none:
      break;
    case Part::recorded:
      marks.services.record(false);
      marks.services.write_note(call_number() + "\"outputs\":{}}");
      break;
    case Part::whole_call:
      end_whole_call();
      break;
    case Part::device_work:
      end_device_work();
      break;
  }
  marks.part = Part::none;
}

void before_work(CUstream stream) {
  if (marks.part != Part::device_work || marks.works_so_far > 0) return;
  flush_cache(stream, flushes);
  marks.driver.record_event(marks.start, stream);
}

void after_work(CUstream stream) {
  if (marks.part == Part::recorded) ++marks.works;
  if (marks.part != Part::device_work) return;
  if (++marks.works_so_far != marks.works) return;
  marks.stopped = marks.driver.record_event(marks.stop, stream) == CUDA_SUCCESS;
}

}  // namespace rekernel_recorder
