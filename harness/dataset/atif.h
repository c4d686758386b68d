#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// The version of the Agent Trajectory Interchange Format that is written (Harbor's RFC 0001).
inline constexpr const char* atif_version = "ATIF-v1.7";

/// Writes a recorded search as one document of that format, piece by piece: each prompt is a step
/// of the user's, each reply one of the agent's with its tokens and, as observation, the verdict on
/// its kernel; each selection is a step of the system's. Requests of a round, which were asked at
/// once, stand one after the other. The search is replayed exactly meanwhile, and held a round at a
/// time. `write` is false where nothing more can be written. Returns the number of steps; what was
/// written before an error is no whole document.
Result<std::size_t> write_atif(const std::filesystem::path& trajectory,
                               const std::function<bool(std::string_view)>& write);

}  // namespace rekernel
