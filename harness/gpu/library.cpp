#include "harness/gpu/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "harness/base/text.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// `folder`/*/`suffix` for every subfolder, sorted.
std::vector<std::string> below(const fs::path& folder, const std::string& suffix) {
  std::vector<std::string> result;
  std::error_code status;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    const fs::path path = it->path() / suffix;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) result.push_back(path.string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// The project's own folders come first: the set-up pinned what is there.
std::vector<std::string> library_folders() {
  const fs::path dependencies = fs::path(REKERNEL_SOURCE_DIR) / ".deps";
  std::vector<std::string> result;
  for (const fs::path& folder :
       {dependencies, dependencies / "nvidia", dependencies / "python" / "nvidia"}) {
    for (const char* suffix : {"lib", "lib64"}) {
      const std::vector<std::string> found = below(folder, suffix);
      result.insert(result.end(), found.begin(), found.end());
    }
  }
  const fs::path toolkit = fs::path(REKERNEL_CUDA_INCLUDE_DIR).parent_path();
  for (const fs::path& folder : {toolkit / "lib64", toolkit / "lib"}) {
    if (toolkit.is_absolute()) result.push_back(folder.string());
  }
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
                             "/usr/lib/x86_64-linux-gnu"}) {
    if (std::find(result.begin(), result.end(), folder) == result.end()) result.push_back(folder);
  }
  return result;
}

/// The driver's libraries belong to the kernel module that is loaded: a copy from elsewhere, a stub
/// for linking say, must not win over the loader's choice.
bool belongs_to_driver(const std::string& soname) {
  return soname.starts_with("libcuda.so") || soname.starts_with("libnvidia-ml.so");
}

std::string path_of(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name) {
    return map->l_name;
  }
  return fallback;
}

/// Opens libraries by path or by name and keeps the reason why one that is there could not be
/// loaded.
class Opener {
 public:
  void* by_path(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored) ? open(path) : nullptr;
  }

  void* by_name(const std::string& soname) {
    void* handle = ::dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    // "No such file" is the usual answer and says nothing new.
    const char* reason = ::dlerror();
    const std::string text = reason ? reason : "";
    if (text.find("cannot open shared object file: No such file") == std::string::npos) {
      reason_ = text;
    }
    return nullptr;
  }

  const std::string& reason() const { return reason_; }

 private:
  void* open(const std::string& path) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* reason = ::dlerror();
      reason_ = reason ? reason : path + ": cannot be loaded";
    }
    return handle;
  }

  std::string reason_;
};

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& sonames) {
  const bool driver = std::any_of(sonames.begin(), sonames.end(),
                                  [](const auto& s) { return belongs_to_driver(s); });
  const std::vector<std::string> folders =
      driver ? std::vector<std::string>{"/usr/local/nvidia/lib64"} : library_folders();

  // Folder by folder, so that what the set-up pinned wins whatever its version is.
  Opener opener;
  DynamicLibrary library;
  const auto by_name = [&] {
    for (const std::string& soname : sonames) {
      if (!library.handle_) library.handle_ = opener.by_name(soname);
    }
  };
  if (driver) by_name();
  for (const std::string& folder : folders) {
    for (const std::string& soname : sonames) {
      if (!library.handle_) library.handle_ = opener.by_path(folder + "/" + soname);
    }
  }
  if (!driver) by_name();
  if (library.handle_) {
    library.path_ = path_of(library.handle_, sonames.front());
    return library;
  }
  std::string message =
      joined(sonames) + ": not found in " + joined(folders) + " or on the loader's own path";
  if (!opener.reason().empty()) message += "; " + opener.reason();
  return Error{message};
}

void* DynamicLibrary::find(const char* symbol) const {
  return handle_ ? ::dlsym(handle_, symbol) : nullptr;
}

std::vector<std::string> cuda_include_search_path() {
  std::vector<std::string> result;
  for (const std::string& folder :
       {std::string(REKERNEL_CUDA_INCLUDE_DIR),
        std::string(REKERNEL_SOURCE_DIR) + "/.deps/python/nvidia/cu13/include",
        std::string("/usr/local/cuda/include"),
        std::string("/usr/local/cuda/targets/x86_64-linux/include")}) {
    if (std::find(result.begin(), result.end(), folder) == result.end()) result.push_back(folder);
  }
  return result;
}

std::vector<std::string> cuda_include_directories() {
  std::vector<std::string> result;
  std::vector<fs::path> seen;
  for (const std::string& folder : cuda_include_search_path()) {
    std::error_code status;
    if (!fs::exists(fs::path(folder) / "cuda_fp16.h", status)) continue;
    // /usr/local/cuda/include is often a link to the folder below targets/.
    const fs::path real = fs::canonical(folder, status);
    if (status || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    result.push_back(folder);
    // CUDA 13 keeps <cuda/…> there.
    if (fs::is_directory(folder + "/cccl", status)) result.push_back(folder + "/cccl");
  }
  return result;
}

}  // namespace rekernel
