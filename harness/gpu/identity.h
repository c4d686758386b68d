#pragma once

#include <string>
#include <vector>

#include "harness/gpu/capability.h"
#include "ops/result.h"

namespace rekernel {

/// A GPU by what no numbering changes.
struct GpuIdentity {
  std::string name;  ///< "NVIDIA H200"
  std::string uuid;  ///< 32 hexadecimal digits
  ComputeCapability capability;
  /// What CUDA_VISIBLE_DEVICES must be for a process to see it alone, as its number 0.
  std::string visible;
  std::string file;  ///< "/dev/nvidia2"; empty where that is not known
};

/// Identity of the GPU with this number for CUDA. NVML is asked where that leaves no doubt, since
/// CUDA's own start takes tenths of a second for each GPU; else CUDA. No memory of the device is
/// taken.
Result<GpuIdentity> identify_gpu(int ordinal);

/// All that CUDA would number here, in its order; an error where NVML leaves a doubt.
Result<std::vector<GpuIdentity>> gpus_known_to_nvml();

/// From here on CUDA numbers GPUs here and in processes that are started as NVML and `nvidia-smi`
/// do, by their place on the bus, unless the user asked for another order.
void number_gpus_by_bus();

/// What CUDA_VISIBLE_DEVICES must be for a process to see only the GPU that has this number here,
/// as its number 0, where the variable is `visible` (null: not set). Empty: there is no such GPU.
std::string visible_alone(const char* visible, int ordinal);
/// The same for this process's variable.
std::string visible_alone(int ordinal);

}  // namespace rekernel
