#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// The longest text of a profile: 600 tokens, by estimated_tokens.
inline constexpr std::size_t max_profile_bytes = 2400;

/// What a profiler said of a candidate, as the prompts of later rounds show it.
struct ProfileRecord {
  std::string device;  ///< "NVIDIA H200"
  std::string tool;    ///< "Nsight Compute 2025.3.1"
  std::string text;    ///< lines, each with its newline
  /// Why this candidate has no profile, one line; then there is no text. What keeps every candidate
  /// from being profiled (no profiler, no permission) is not recorded: the search waits.
  std::string unavailable;

  bool operator==(const ProfileRecord&) const = default;
};

/// The event `profile` of a candidate: {"event", "id", "sha256", "device", "tool", and "text" or
/// "unavailable"}. Texts are cut to what may be recorded.
boost::json::object profile_event(const std::string& id, const std::string& sha256,
                                  const ProfileRecord& profile);
/// Errors: a member is missing, is unknown, or is too long.
Result<ProfileRecord> profile_from_event(const boost::json::object& event,
                                         const std::string& where);

/// What a prompt says of the candidate.
std::string prompt_profile(const ProfileRecord& profile);

}  // namespace rekernel
