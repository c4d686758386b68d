#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// A GPU as the driver numbers and names it.
struct VisibleGpu {
  int ordinal = 0;
  std::string name;  ///< "NVIDIA H200"
  int major = 0;     ///< of its compute capability
  int minor = 0;
};

/// The GPUs that this process may use, or why there is none. Takes no memory of them.
Result<std::vector<VisibleGpu>> visible_gpus();

/// Those that a user names: "all", or their numbers, "0,2". Times of GPUs of different kinds cannot
/// be compared: they are refused unless they are asked for (`mixed`; nothing where nobody can ask).
Result<std::vector<VisibleGpu>> choose_gpus(const std::string& names,
                                            const std::vector<VisibleGpu>& visible,
                                            std::optional<bool> mixed);

/// "GPU 1 (NVIDIA L40S, 8.9)"
std::string to_string(const VisibleGpu& gpu);

}  // namespace rekernel
