#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/device/launch.h"
#include "ops/problem.h"

namespace rekernel {

/// A floating-point output with the same value everywhere.
struct Constant {
  std::string output;
  DType dtype = DType::f32;
  std::uint64_t bits = 0;
};

/// "y = 0.015625 everywhere"
std::string to_text(const Constant& constant);

/// The values that are nearest to all elements of each floating-point output: the mean, which has
/// the least rms error, and the middle of the range, which has the least largest error. From parts
/// of tensors on the current device. Throws CudaError.
std::vector<Constant> best_constants(const Problem& problem, const Bindings& outputs);

/// Writes it to the whole buffer. Throws CudaError.
void fill(const BufferView& view, const Constant& constant);

}  // namespace rekernel
