#include "harness/gpu/choice.h"

#include <algorithm>
#include <charconv>

#include "harness/gpu/cuda.h"

namespace rekernel {
namespace {

/// "0,2" as numbers; nothing where it is something else.
std::vector<int> numbers_in(const std::string& names) {
  std::vector<int> numbers;
  const char* at = names.data();
  const char* const end = at + names.size();
  while (true) {
    int number = 0;
    const auto [stop, code] = std::from_chars(at, end, number);
    if (code != std::errc() || number < 0) return {};
    numbers.push_back(number);
    if (stop == end) return numbers;
    if (*stop != ',') return {};
    at = stop + 1;
  }
}

bool same_kind(const VisibleGpu& a, const VisibleGpu& b) {
  return a.name == b.name && a.major == b.major && a.minor == b.minor;
}

}  // namespace

Result<std::vector<VisibleGpu>> visible_gpus() {
  std::vector<VisibleGpu> gpus;
  if (const auto known = gpus_known_to_nvml()) {
    for (const GpuIdentity& gpu : *known) {
      gpus.push_back(
          {static_cast<int>(gpus.size()), gpu.name, gpu.capability.major, gpu.capability.minor});
    }
    return gpus;
  }
  const Result<const DriverApi*> api = load_driver();
  if (!api) return api.error();
  int count = 0;
  if ((*api)->cuInit(0) != CUDA_SUCCESS || (*api)->cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count == 0) {
    return Error{"an NVIDIA driver, but no GPU that it can use"};
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Result<GpuIdentity> gpu = cuda_identity(ordinal);
    if (!gpu) return gpu.error();
    gpus.push_back({ordinal, gpu->name, gpu->capability.major, gpu->capability.minor});
  }
  return gpus;
}

Result<std::vector<VisibleGpu>> choose_gpus(const std::string& names,
                                            const std::vector<VisibleGpu>& visible,
                                            std::optional<bool> mixed) {
  std::vector<VisibleGpu> chosen;
  if (names == "all") {
    chosen = visible;
  } else {
    for (const int number : numbers_in(names)) {
      const auto found = std::find_if(visible.begin(), visible.end(),
                                      [&](const VisibleGpu& gpu) { return gpu.ordinal == number; });
      const bool twice = std::any_of(chosen.begin(), chosen.end(),
                                     [&](const VisibleGpu& gpu) { return gpu.ordinal == number; });
      if (found == visible.end() || twice) {
        return Error{"--gpus: " + std::to_string(number) +
                     (twice
                          ? " appears twice"
                          : ": expected numbers from 0 to " + std::to_string(visible.size() - 1))};
      }
      chosen.push_back(*found);
    }
    if (chosen.empty()) return Error{"--gpus: expected all, or numbers as 0,2"};
  }
  for (const VisibleGpu& gpu : chosen) {
    if (mixed.value_or(false) || same_kind(gpu, chosen.front())) continue;
    return Error{to_string(gpu) + " is of another kind than " + to_string(chosen.front()) +
                 ": their times cannot be compared. Choose some with --gpus" +
                 (mixed ? ", or take all the same with --mixed-gpus" : "")};
  }
  return chosen;
}

std::string to_string(const VisibleGpu& gpu) {
  return "GPU " + std::to_string(gpu.ordinal) + " (" + gpu.name + ", " + std::to_string(gpu.major) +
         "." + std::to_string(gpu.minor) + ")";
}

}  // namespace rekernel
