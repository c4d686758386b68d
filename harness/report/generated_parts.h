#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// A file that is not, or not all, written by people, and what is wrong with it.
struct GeneratedComplaint {
  std::string file;  ///< from the root
  std::string message;
};

/// Pages of which a part is made from records: README.md, harness/TIMING.md and the like, whole, as
/// they must be. By path from the root. The error names what cannot be made.
Result<std::map<std::string, std::string>> generated_pages(const std::filesystem::path& root);

/// Those that are not what the records give. An error where one cannot be made.
Result<std::vector<GeneratedComplaint>> stale_pages(const std::filesystem::path& root);

/// README.md alone: the one that a candidate's pull request may bring.
Result<std::vector<GeneratedComplaint>> stale_readme(const std::filesystem::path& root);

}  // namespace rekernel
