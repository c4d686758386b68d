#pragma once

#include "ops/result.h"

namespace rekernel {

/// From here on this process and its threads can start no process and no program, open no internet
/// socket and look into no other process; what tries gets an error, as when resources are short.
/// Threads stay possible, and so does everything that CUDA does. Works for every user, in
/// containers too, since it only gives rights up. An error where the system knows no such filter.
Result<Ok> lock_down();

}  // namespace rekernel
