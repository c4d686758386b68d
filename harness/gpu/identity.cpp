#include "harness/gpu/identity.h"

#include <cstdlib>
#include <string_view>

#include "harness/gpu/cuda.h"
#include "harness/gpu/nvml.h"

namespace rekernel {

namespace {

/// NVML numbers and hides nothing as CUDA does: only a whole UUID, or a machine's only GPU, is
/// surely the same for both.
Result<GpuIdentity> ask_nvml(int ordinal) {
  constexpr std::size_t uuid_length = 40;
  const std::string visible = visible_alone(ordinal);
  if (visible.starts_with("GPU-") && visible.size() == uuid_length) return nvml_identity(visible);
  if (visible == "0") return nvml_identity_of_only_gpu();
  return Error{"NVML cannot tell which GPU that is"};
}

}  // namespace

Result<GpuIdentity> identify_gpu(int ordinal) {
  if (const Result<GpuIdentity> known = ask_nvml(ordinal)) return *known;
  return cuda_identity(ordinal);
}

std::string visible_alone(const char* visible, int ordinal) {
  if (!visible) return std::to_string(ordinal);
  std::string_view names = visible;
  for (int passed = 0; passed < ordinal && !names.empty(); ++passed) {
    const std::size_t comma = names.find(',');
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return std::string(names.substr(0, names.find(',')));
}

std::string visible_alone(int ordinal) {
  return visible_alone(std::getenv("CUDA_VISIBLE_DEVICES"), ordinal);
}

}  // namespace rekernel
