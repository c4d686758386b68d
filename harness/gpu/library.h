#pragma once

#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// A shared library opened at run time, so that a machine without it still runs everything else and
/// `doctor` can say what is missing. Stays open until the process ends: CUDA libraries do not
/// survive being unloaded.
class DynamicLibrary {
 public:
  /// Tries every name in the project's dependency folders, the CUDA toolkit and the loader's own
  /// path.
  static Result<DynamicLibrary> open(const std::vector<std::string>& sonames);

  /// The address of a function, or nullptr.
  void* find(const char* symbol) const;
  const std::string& path() const { return path_; }

  /// The address of a function as `function`'s type; false if the library lacks it.
  template <class Function>
  bool load(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

/// The folders in which `cuda_include_directories` looks, in order; not all exist.
std::vector<std::string> cuda_include_search_path();

/// Folders with CUDA headers, for NVRTC: the one that the build found first, then the usual places.
std::vector<std::string> cuda_include_directories();

}  // namespace rekernel
