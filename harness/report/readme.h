#pragma once

#include <filesystem>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// README.md with the tables between its `<!-- name:start -->` and `<!-- name:end -->` markers made
/// again from results/ and trajectories/. The error names a missing marker or an unreadable record.
Result<std::string> generated_readme(const std::filesystem::path& root);

}  // namespace rekernel
