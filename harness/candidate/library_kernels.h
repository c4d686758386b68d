#pragma once

#include <string>
#include <vector>

#include "ops/program.h"

namespace rekernel {

/// Whose kernels a plan launches, by their names, where these are a library's: "cuBLAS", "cuDNN",
/// "CUTLASS", "PyTorch". A wrapper round a library is seen as one; a kernel that takes a library's
/// name harms itself alone.
std::vector<std::string> libraries_of(const Program& program);

}  // namespace rekernel
