#pragma once

#include <string>
#include <vector>

#include "harness/records/record.h"
#include "ops/result.h"
#include "replay/playback/replayer.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// The row that `bench --record` would have written from a candidate's recorded evaluation, for a
/// kernel of this name, in a bench of its own. Its date is the record's "measured" if there is one,
/// else today. The bench has the device's name and toolchain; the rest of the device where the
/// search's header tells of the same one; no ceilings, since the record has none. Needs a replay
/// that kept the candidates. Fails for a candidate that did not pass, and for a record that a bench
/// file cannot hold.
Result<Bench> recorded_bench(const ReplayedSearch& search, const ReplayedCandidate& candidate,
                             const std::string& kernel);

/// Where the row of a kernel is unlike the evaluation of the candidate that the kernel is: the same
/// source and plan on the same device has the same verdict, about the same errors (a factor of
/// four) and about the same time (a quarter more or less). "median_ns: …" each.
std::vector<std::string> unlike_origin(const BenchRow& row, const std::string& device,
                                       const ReplayedCandidate& origin);

/// Where the device of a search, by whose figures its evaluations are examined, is not the chip of
/// that name.
std::vector<std::string> unlike_known_device(const DeviceFacts& device);

}  // namespace rekernel
