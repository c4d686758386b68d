#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace rekernel {

/// What verify's options ask for.
struct PullRequestOptions {
  std::string base;
  std::optional<std::filesystem::path> comment;
  enum class Gpu { automatic, on, off } gpu = Gpu::automatic;
  int device = 0;
  bool json = false;
};

/// Judges HEAD, not the work tree, as a pull request onto a commit; the exit status. What is not
/// committed is named.
int verify_pull_request(const std::filesystem::path& root, const PullRequestOptions& options);

}  // namespace rekernel
