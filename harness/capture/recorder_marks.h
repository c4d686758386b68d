#pragma once

// The recorder's part that answers the marks of a program (rekernel_marks.h): which calls of its
// work are recorded, and which are timed.

#include <cuda.h>

#include <cstdarg>
#include <cstdint>
#include <string>

namespace rekernel_recorder {

/// What the marks ask of the recorder.
struct MarkServices {
  void (*write_note)(const std::string& json);
  void (*write_time)(bool device, std::int64_t nanoseconds);
  /// Bytes of device memory from an address to the end of its allocation; 0 for other addresses.
  std::int64_t (*bytes_from)(std::uint64_t address);
  void (*record)(bool on);
};

/// The first marked call warms up, the two after it are recorded, and `samples` of each kind after
/// those are timed: their work on the device, and the whole call. Later ones are left alone.
void start_marks(const MarkServices& services, int samples);
bool marks_are_on();

void mark_begin(const char* first_name, std::va_list pointers_and_names);
void mark_end();
/// How often a program should call its work.
int marked_calls();

/// Around each call of the driver that works on the device, with its stream.
void before_work(CUstream stream);
void after_work(CUstream stream);

}  // namespace rekernel_recorder
