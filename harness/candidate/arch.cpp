#include "harness/candidate/arch.h"

#include <algorithm>
#include <charconv>

#include "harness/base/text.h"

namespace rekernel {

std::optional<std::int64_t> matrix_operations_per_clock(ComputeCapability device) {
  for (const MatrixRate& row : matrix_rates) {
    if (row.capability == device) return row.fp16_operations;
  }
  return std::nullopt;
}

std::vector<Arch> Arch::all() {
  std::vector<Arch> result;
  for (const Architecture& row : architectures) result.push_back(Arch(row));
  return result;
}

const char* to_string(Arch arch) { return arch->name; }

std::optional<Arch> arch_from_string(std::string_view text) {
  for (const Arch arch : Arch::all()) {
    if (text == arch->name) return arch;
  }
  return std::nullopt;
}

std::string known_archs() {
  std::vector<std::string> names;
  for (const Arch arch : Arch::all()) names.push_back('"' + std::string(arch->name) + '"');
  return joined(names);
}

bool has_clusters(Arch arch) { return arch->max_cluster_blocks > 1; }
bool has_tensor_maps(Arch arch) { return arch->tensor_maps; }

bool runs_on(Arch arch, int major, int minor) {
  const ComputeCapability device{major, minor};
  return arch->family_specific ? device == arch->capability : device >= arch->capability;
}

std::vector<Arch> archs_on(ComputeCapability device) {
  std::vector<Arch> result;
  for (const Arch arch : Arch::all()) {
    if (runs_on(arch, device.major, device.minor)) result.push_back(arch);
  }
  return result;
}

std::vector<std::string> targets_of(Arch arch) {
  std::vector<std::string> result;
  for (const Arch other : Arch::all()) {
    if (runs_on(arch, other->capability.major, other->capability.minor)) {
      result.emplace_back(other->name);
    }
  }
  return result;
}

std::int64_t most_resident_threads(ComputeCapability device) {
  const Architecture* nearest = &architectures[0];
  for (const Architecture& row : architectures) {
    const auto [major, minor] = row.capability;
    const bool older = major < device.major || (major == device.major && minor <= device.minor);
    if (older) nearest = &row;
  }
  return std::int64_t{nearest->max_threads_per_multiprocessor} * nearest->multiprocessors;
}

std::string target_for(ComputeCapability device) {
  // Since the first of them, a device's own features need the suffix.
  const bool has_suffix = std::any_of(
      std::begin(architectures), std::end(architectures),
      [&](const Architecture& row) { return row.family_specific && device >= row.capability; });
  return "sm_" + std::to_string(device.major) + std::to_string(device.minor) +
         (has_suffix ? "a" : "");
}

std::optional<ComputeCapability> capability_of(std::string_view target) {
  constexpr std::string_view prefix = "sm_";
  if (!target.starts_with(prefix)) return std::nullopt;
  target.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, code] = std::from_chars(target.data(), target.data() + target.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(target.data() + target.size() - end));
  if (code != std::errc() || number < 10 || !(rest.empty() || rest == "a")) return std::nullopt;
  return ComputeCapability{number / 10, number % 10};
}

}  // namespace rekernel
