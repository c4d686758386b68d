#pragma once

#include "ops/result.h"

namespace rekernel {

/// From here on this thread, and all that it starts, can make only the system calls that the CUDA
/// driver, its libraries and our own code need: files, memory, threads, time, waiting, Unix sockets
/// and the driver's own devices. No process and no program is started, no internet socket opened,
/// no signal sent to another process, and nothing of the operating system's newer doors (io_uring,
/// bpf, userfaultfd, keys) can be used. What is refused gets an error, as when resources are short.
/// Works for every user, in containers too, since it only gives rights up. An error where the
/// system knows no such filter.
///
/// With REKERNEL_SANDBOX=report, each refused call is also told on standard error, by its number. A
/// thread without a filter does that: for finding out what a new driver needs, not for strangers'
/// kernels.
Result<Ok> lock_down();

/// What begins each line of such a report.
inline constexpr const char* refused_call_mark = "rekernel: refused system call ";

}  // namespace rekernel
