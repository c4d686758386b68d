#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// A file of this project.
inline std::filesystem::path committed(const std::string& path) {
  return std::filesystem::path(REKERNEL_SOURCE_DIR) / path;
}

/// What was to be read; a benchmark of an error would measure something else.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace rekernel
