#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

// What can be read off a trajectory's file without going through the search.

/// How the models of a search, `models` in its header, were asked last; without a look at what else
/// is in the trajectory.
Result<std::vector<ModelSettings>> last_endpoints(const std::filesystem::path& path,
                                                  const std::vector<ModelSettings>& models);

/// The GPU that the first times in a trajectory are of; empty if it has none.
Result<std::string> timed_on(const std::filesystem::path& path);

/// Whether a search is writing the file now.
bool is_being_written(const std::filesystem::path& path);

}  // namespace rekernel
