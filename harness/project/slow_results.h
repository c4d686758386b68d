#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rekernel {

/// What is wrong with every results/*/slow.json, a line for each complaint: a record that cannot be
/// read or contradicts itself, and rows of slow candidates that are no longer made of their
/// problem.
std::vector<std::string> stale_slow_results(const std::filesystem::path& root);

}  // namespace rekernel
