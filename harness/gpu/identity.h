#pragma once

#include <string>

#include "harness/gpu/capability.h"
#include "ops/result.h"

namespace rekernel {

/// A GPU by what no numbering changes.
struct GpuIdentity {
  std::string uuid;  ///< 32 hexadecimal digits
  ComputeCapability capability;
};

/// Of the GPU that CUDA gives this number here. NVML is asked where that leaves no doubt, since
/// CUDA's own start takes tenths of a second; else CUDA. No memory of the device is taken.
Result<GpuIdentity> identify_gpu(int ordinal);

/// What CUDA_VISIBLE_DEVICES must be for a process to see only the GPU that has this number here,
/// as its number 0, where the variable is `visible` (null: not set). Empty: there is no such GPU.
std::string visible_alone(const char* visible, int ordinal);
/// The same for this process's variable.
std::string visible_alone(int ordinal);

}  // namespace rekernel
