#pragma once

#include "harness/capture/recording.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What a program marked by name (rekernel_marks.h), as inputs and outputs of the problem. The
/// recorder wrote down how much memory there is from each address on; afterwards each tensor has
/// the problem's size. Errors name what is unknown, missing, too small, or not in device memory.
Result<Ok> assign_marked(Recording& recording, const Problem& problem);

}  // namespace rekernel
