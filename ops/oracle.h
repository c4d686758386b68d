#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/problem.h"

namespace rekernel {

// What the device oracles share: pieces of device source and of launch plans.

/// Device source: `gemm::multiply`, a tiled float64 product whose operands come from callables and
/// whose result goes to one, so that the matrix product, convolution and attention are three uses
/// of it; and `to_double` for stored floats and halves (`half_bits`).
std::string gemm_source();

/// A launch of a kernel that calls gemm::multiply for a rows × columns result, `batch` of them
/// along the third grid dimension.
KernelLaunch gemm_launch(const std::string& kernel, std::int64_t rows, std::int64_t columns,
                         std::int64_t batch, std::vector<Argument> args);

/// Device source: `block::sum` and `block::maximum` of one float64 per thread, the result in every
/// thread and the same in every run. Blocks are whole warps.
std::string block_reduction_source();

/// The largest ‖error‖ ÷ ‖truth‖ of a row of the output (its last axis) against the truth; an exact
/// row of zeros has none, a NaN is infinitely far off. What bounds on the whole output cannot see
/// where rows differ much in size.
Invariant row_error_invariant(const Tensor& output, double bound);

/// A plain launch on a (x, y) grid of one-dimensional blocks.
KernelLaunch simple_launch(const std::string& kernel, std::int64_t blocks_x, std::int64_t blocks_y,
                           std::int64_t threads, std::vector<Argument> args);

std::vector<Argument> buffers(const std::vector<std::string>& names);

inline std::int64_t ceil_div(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

/// Bytes of every tensor, each moved once.
std::int64_t bytes_moved_once(const std::vector<Tensor>& tensors);

}  // namespace rekernel
