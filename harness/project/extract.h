#pragma once

#include <optional>
#include <string>

#include "replay/playback/replayer.h"

namespace rekernel {

struct ExtractOptions {
  std::string id;                   ///< "r4.i2.b1"
  std::optional<std::string> name;  ///< of the kernel and its folder; the candidate's own if absent
  /// The folder to put the kernel's folder into; the present one if absent, but the problem's below
  /// generated/ where the measurement is recorded.
  std::optional<std::filesystem::path> to;
  bool record = false;  ///< the search's measurement becomes the kernel's row in results/
};

/// Writes one candidate of a search as a folder of its own, and its measurement if asked. Returns
/// what to tell about it, in lines.
Result<std::string> extract_candidate(const ReplayedSearch& search, const ExtractOptions& options);

}  // namespace rekernel
