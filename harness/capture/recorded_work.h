#pragma once

#include <vector>

#include "harness/capture/recording.h"
#include "ops/result.h"

namespace rekernel {

/// Everything of a call that works on the device, graphs expanded, if it is one row of steps. The
/// error says what a plan cannot do: several streams or threads, calls that leave a trace.
Result<std::vector<RecordedStep>> work_of(const RecordedCall& call);

}  // namespace rekernel
