#include "harness/measuring/references.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "harness/gpu/nvml.h"
#include "reference/pytorch.h"
#include "reference/reference.h"

namespace rekernel {

namespace {

/// torch.compile builds kernels with a compiler of its own.
constexpr std::chrono::seconds pytorch_startup_deadline{180};
constexpr std::chrono::seconds torch_compile_run_deadline{600};
constexpr const char* torch_compile_id = "pytorch_compile";

Result<std::unique_ptr<Runnable>> make_library_reference(const std::string& id,
                                                         const Problem& problem,
                                                         const Bindings& bindings,
                                                         const Device& device) {
  for (const ReferenceInfo& info : references_of(problem)) {
    if (info.id == id) return make_reference(info, problem, bindings, device);
  }
  return Error{"unknown reference '" + id + "' for " + problem.id};
}

Result<std::unique_ptr<ExternalReference>> connect_pytorch(const std::string& id,
                                                           const Problem& problem,
                                                           const std::array<int, 2>& descriptors,
                                                           int device) {
  auto connected =
      PytorchReference::connect(descriptors, problem, id, device, pytorch_startup_deadline);
  if (!connected) return connected.error();
  return std::unique_ptr<ExternalReference>(std::move(*connected));
}

}  // namespace

ReferenceSource all_references() {
  return {make_library_reference, load_library_of, connect_pytorch, "cublas_fp16"};
}

std::vector<std::string> library_reference_ids(const std::string& problem) {
  std::vector<std::string> ids;
  for (const ReferenceInfo& info : references_of(problem)) ids.push_back(info.id);
  return ids;
}

std::vector<std::string> headline_reference_ids(const std::string& problem) {
  const std::optional<std::string> headline = headline_id(problem);
  return headline ? std::vector<std::string>{*headline} : std::vector<std::string>{};
}

void leave_time_for_torch_compile(EvaluateOptions& options) {
  const std::vector<std::string>& ids = options.external_references;
  if (std::find(ids.begin(), ids.end(), torch_compile_id) == ids.end()) return;
  options.run_deadline = std::max(options.run_deadline, torch_compile_run_deadline);
}

Result<std::string> installed_pytorch_version() {
  // Asks the package's metadata: importing PyTorch takes seconds.
  std::FILE* output = ::popen(
      "python3 -c 'import importlib.metadata as m; print(m.version(\"torch\"))' 2>/dev/null", "r");
  char line[128] = {};
  if (output) {
    if (!std::fgets(line, sizeof line, output)) line[0] = '\0';
    ::pclose(output);
  }
  std::string version = line;
  while (!version.empty() && version.back() == '\n') version.pop_back();
  if (version.empty()) return Error{"python3 here has no PyTorch"};
  return version;
}

bool pytorch_is_installed() { return installed_pytorch_version().ok(); }

std::vector<std::string> pytorch_ids(const Problem& problem, bool compiled) {
  std::vector<std::string> ids = pytorch_reference_ids(problem);
  if (!compiled) std::erase(ids, std::string("pytorch_compile"));
  return ids;
}

std::map<std::string, std::string> toolchain_versions() {
  std::map<std::string, std::string> versions;
  if (Result<Compiler> compiler = Compiler::load()) versions["NVRTC"] = compiler->version();
  if (Result<std::string> driver = driver_version_text()) versions["driver"] = *driver;
  if (Result<std::string> torch = installed_pytorch_version()) versions["PyTorch"] = *torch;
  for (auto& [library, version] : reference_library_versions()) versions[library] = version;
  return versions;
}

Result<int> device_count() {
  Result<const DriverApi*> api = load_driver();
  if (!api) return api.error();
  int count = 0;
  if (driver().cuInit(0) != CUDA_SUCCESS || driver().cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count == 0) {
    return Error{"an NVIDIA driver, but no GPU that it can use"};
  }
  return count;
}

}  // namespace rekernel
