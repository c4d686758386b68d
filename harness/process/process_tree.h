#pragma once

#include <sys/types.h>

#include <chrono>

namespace rekernel {

/// Kills a child of this process, its process group and everything below it, and waits until they
/// are gone: a process that has ended holds neither memory nor GPU. Gives the child's wait status.
/// After `patience`, what does not die (a driver that hangs) is left.
int kill_process_tree(pid_t child, std::chrono::milliseconds patience);

}  // namespace rekernel
