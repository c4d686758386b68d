#include "harness/gpu/identity.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "harness/gpu/cuda.h"
#include "harness/gpu/nvml.h"

namespace rekernel {

namespace {

constexpr const char* order_variable = "CUDA_DEVICE_ORDER";
constexpr std::string_view bus_order = "PCI_BUS_ID";

/// A whole UUID is surely the same for NVML and CUDA, a number where both count along the bus.
Result<GpuIdentity> ask_nvml(int ordinal) {
  constexpr std::size_t uuid_length = 40;
  const std::string visible = visible_alone(ordinal);
  if (visible.starts_with("GPU-") && visible.size() == uuid_length) return nvml_identity(visible);
  unsigned index = 0;
  const char* end = visible.data() + visible.size();
  const auto [at, code] = std::from_chars(visible.data(), end, index);
  const char* order = std::getenv(order_variable);
  if (code == std::errc() && at == end && order && order == bus_order) return nvml_identity(index);
  return Error{"NVML cannot tell which GPU that is"};
}

}  // namespace

void number_gpus_by_bus() { ::setenv(order_variable, bus_order.data(), 0); }

Result<std::vector<GpuIdentity>> gpus_known_to_nvml() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const Result<int> count =
      visible ? Result<int>(
                    1 + static_cast<int>(std::count(visible, visible + std::strlen(visible), ',')))
              : nvml_gpu_count();
  if (!count) return count.error();
  std::vector<GpuIdentity> gpus;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    Result<GpuIdentity> gpu = ask_nvml(ordinal);
    if (!gpu) return gpu.error();
    gpus.push_back(std::move(*gpu));
  }
  return gpus;
}

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
