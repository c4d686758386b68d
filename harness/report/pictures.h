#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/report/generated_parts.h"
#include "ops/result.h"

namespace rekernel {

/// The pictures that README.md shows, made from the records: name → SVG. The generator says on
/// standard error what it lacks.
Result<std::map<std::string, std::string>> make_pictures(const std::filesystem::path& root,
                                                         const std::string& readme);

/// Pictures in results/pictures/ that are not those made from the records, and files that no
/// generator makes. An error where pictures cannot be made here.
Result<std::vector<GeneratedComplaint>> stale_pictures(const std::filesystem::path& root);

}  // namespace rekernel
