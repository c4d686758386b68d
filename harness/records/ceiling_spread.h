#pragma once

#include <string>
#include <vector>

#include "harness/records/record.h"

namespace rekernel {

/// Rows whose ceilings are not those of the file's other rows. Ceilings are measured again beside
/// every kernel, and a row's floor follows from its own: whoever raises them lowers the floor.
/// "rows[3] (softmax/online): ceilings.copy_bytes_per_s: …" each.
std::vector<std::string> outlying_ceilings(const Bench& bench);

}  // namespace rekernel
