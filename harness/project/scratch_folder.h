#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <utility>

#include "ops/result.h"

namespace rekernel {

/// A temporary folder that goes with its owner, and all that is in it.
class ScratchFolder {
 public:
  /// `purpose` is part of its name.
  static Result<ScratchFolder> make(const std::string& purpose) {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / ("rekernel-" + purpose + "-XXXXXX")).string();
    if (!::mkdtemp(pattern.data())) return Error{pattern + ": cannot be made"};
    return ScratchFolder(pattern);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace rekernel
