#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Digests of the sources that decide a verdict or a time, sixteen hexadecimal digits each. They
/// are of what the sources say (see source_tokens.h), whatever the files are called and wherever in
/// these folders they lie.
struct HarnessDigests {
  std::string judge;                              ///< of what judges every row
  std::map<std::string, std::string> problems;    ///< by id: of what is a problem's alone
  std::map<std::string, std::string> references;  ///< by id

  bool operator==(const HarnessDigests&) const = default;
};

/// Of the sources in a checkout.
Result<HarnessDigests> harness_digests_of(const std::filesystem::path& root);

/// The files and folders from which harness_digests_of() makes them.
Result<std::vector<std::filesystem::path>> judging_sources(const std::filesystem::path& root);

}  // namespace rekernel
