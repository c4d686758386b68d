#pragma once

#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// From here on this process and its threads can open none of these files, given by their absolute
/// paths; what is made in the folders that lead to them from now on cannot be opened either. Works
/// for every user and in containers (Landlock, Linux 5.13 or newer), since it only gives rights up.
/// An error, and nothing is hidden, where the system has no such thing.
Result<Ok> hide_files(const std::vector<std::string>& paths);

}  // namespace rekernel
