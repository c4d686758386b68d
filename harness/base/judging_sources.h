#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Digests of the sources that decide a verdict or a time, sixteen hexadecimal digits each. They
/// are of what the sources say (see source_tokens.h), whatever the files are called and wherever in
/// these folders they lie.
struct HarnessDigests {
  std::string judge;                              ///< of what judges every row
  std::map<std::string, std::string> references;  ///< by id

  bool operator==(const HarnessDigests&) const = default;
};

/// Digests of the sources in a checkout.
Result<HarnessDigests> harness_digests_of(const std::filesystem::path& root);

/// The digest of a problem's file, sixteen digits too: white space between tokens, the title and
/// the source do not count.
std::string problem_digest(std::string_view text);

/// Those of all problems in a checkout, by id.
Result<std::map<std::string, std::string>> problem_digests_of(const std::filesystem::path& root);

/// The files and folders from which harness_digests_of() makes them.
Result<std::vector<std::filesystem::path>> judging_sources(const std::filesystem::path& root);

}  // namespace rekernel
