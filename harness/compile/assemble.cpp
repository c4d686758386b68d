#include "harness/compile/assemble.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/gpu/library.h"

namespace rekernel {
namespace {

using Handle = void*;
constexpr int success = 0;
constexpr int input_ptx = 2;

/// nvJitLink's functions, as its documentation declares them: their header is not on every machine
/// that has the library.
struct NvJitLink {
  int (*create)(Handle*, std::uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, std::size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*error_size)(Handle, std::size_t*) = nullptr;
  int (*error)(Handle, char*) = nullptr;
  int (*log_size)(Handle, std::size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;

  bool load(const DynamicLibrary& library) {
    return library.load("nvJitLinkCreate", create) && library.load("nvJitLinkDestroy", destroy) &&
           library.load("nvJitLinkAddData", add_data) &&
           library.load("nvJitLinkComplete", complete) &&
           library.load("nvJitLinkGetLinkedCubinSize", cubin_size) &&
           library.load("nvJitLinkGetLinkedCubin", cubin) &&
           library.load("nvJitLinkGetErrorLogSize", error_size) &&
           library.load("nvJitLinkGetErrorLog", error) &&
           library.load("nvJitLinkGetInfoLogSize", log_size) &&
           library.load("nvJitLinkGetInfoLog", log);
  }
};

/// One text on its way through the library.
class Assembly {
 public:
  Assembly(const NvJitLink& library, const std::string& target) : library_(library) {
    const std::string arch = "-arch=" + target;
    std::vector<const char*> options = {arch.c_str(), "-verbose"};
    created_ = library_.create(&handle_, static_cast<std::uint32_t>(options.size()),
                               options.data()) == success;
  }
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;
  ~Assembly() {
    if (created_) library_.destroy(&handle_);
  }

  bool created() const { return created_; }
  bool assemble(const std::string& ptx) {
    return library_.add_data(handle_, input_ptx, ptx.c_str(), ptx.size() + 1, "kernel") ==
               success &&
           library_.complete(handle_) == success;
  }
  std::string cubin() const { return text(library_.cubin_size, library_.cubin); }
  std::string error() const { return c_string(text(library_.error_size, library_.error)); }
  std::string log() const { return c_string(text(library_.log_size, library_.log)); }

 private:
  template <class Pointer>
  std::string text(int (*size_of)(Handle, std::size_t*), int (*get)(Handle, Pointer*)) const {
    std::size_t size = 0;
    if (size_of(handle_, &size) != success) return {};
    std::string result(size, '\0');
    if (size > 0 && get(handle_, result.data()) != success) return {};
    return result;
  }
  static std::string c_string(std::string text) {
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  const NvJitLink& library_;
  Handle handle_ = nullptr;
  bool created_ = false;
};

Result<NvJitLink> open_library() {
  const auto library = DynamicLibrary::open({"libnvJitLink.so.13", "libnvJitLink.so.12"});
  if (!library) return Error{"the PTX compiler: " + library.error().message};
  NvJitLink functions;
  if (!functions.load(*library)) {
    return Error{"the PTX compiler: " + library->path() + " is too old"};
  }
  return functions;
}

}  // namespace

Result<Ok> find_assembler() {
  const Result<NvJitLink> library = open_library();
  if (!library) return library.error();
  return Ok{};
}

Result<Assembled> assemble(const std::string& ptx, const std::string& target) {
  const Result<NvJitLink> library = open_library();
  if (!library) return library.error();
  Assembly assembly(*library, target);
  if (!assembly.created()) return Assembled{{}, {}, "the PTX compiler does not know " + target};
  Assembled result;
  if (assembly.assemble(ptx)) {
    result.cubin = assembly.cubin();
    result.log = assembly.log();
  } else {
    result.error = assembly.error();
  }
  if (result.cubin.empty() && result.error.empty())
    result.error = "the PTX compiler says nothing\n";
  return result;
}

}  // namespace rekernel
