#include "harness/candidate/library_kernels.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <variant>

namespace rekernel {
namespace {

struct LibraryName {
  std::string_view part;  ///< of a kernel's name
  const char* library;
};

/// The first that fits counts: cuBLAS and cuDNN are made of CUTLASS's parts.
constexpr std::array<LibraryName, 12> library_names = {
    {{"cublas", "cuBLAS"},
     {"nvjet_", "cuBLAS"},
     {"sgemm_", "cuBLAS"},
     {"hgemm_", "cuBLAS"},
     {"xmma_gemm", "cuBLAS"},
     {"cudnn", "cuDNN"},
     {"xmma_fprop", "cuDNN"},
     {"implicit_convolve", "cuDNN"},
     {"pytorch_flash", "FlashAttention in PyTorch"},
     {"fmha_cutlass", "CUTLASS in PyTorch"},
     {"cutlass", "CUTLASS"},
     {"_ZN2at6native", "PyTorch"}}};

}  // namespace

std::vector<std::string> libraries_of(const Program& program) {
  std::set<std::string> found;
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    const auto name = std::find_if(
        library_names.begin(), library_names.end(),
        [&](const LibraryName& one) { return launch->kernel.find(one.part) != std::string::npos; });
    if (name != library_names.end()) found.insert(name->library);
  }
  return {found.begin(), found.end()};
}

}  // namespace rekernel
