#pragma once

#include <vector>

#include "harness/capture/recording.h"
#include "ops/result.h"

namespace rekernel {

/// What a call does on the device, graphs expanded, in an order in which it may happen.
struct RecordedWork {
  std::vector<RecordedStep> steps;
  /// Whether it was several streams', or a graph's whose nodes may overlap: steps then may have run
  /// beside each other, which a plan does not say.
  bool overlapping = false;
};

/// In the order in which the host issued it: whatever a stream waits for was issued before. The
/// error says what a plan cannot do: several threads, calls that leave a trace.
Result<RecordedWork> work_of(const RecordedCall& call);

}  // namespace rekernel
