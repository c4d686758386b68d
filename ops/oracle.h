#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/problem.h"

namespace rekernel {

// What the device oracles share: pieces of device source and of launch plans.

/// Device source: `gemm::multiply`, a float64 product by the matrix unit of two matrices that are
/// padded with zeros to whole tiles, and whose result goes to a callable; `gemm::widen`, which
/// makes such matrices; and `to_double` for stored floats and halves (`half_bits`). The matrix
/// product, convolution and attention are three uses of it.
std::string gemm_source();

/// Lengths of the matrices that gemm::multiply takes, in elements: rows of the left one and columns
/// of the right one, and what both are summed over.
std::int64_t padded_rows(std::int64_t rows);
std::int64_t padded_columns(std::int64_t columns);
std::int64_t padded_depth(std::int64_t depth);

/// A launch of a kernel that calls gemm::widen for `batch` matrices.
KernelLaunch widen_launch(const std::string& kernel, std::int64_t padded_rows,
                          std::int64_t padded_columns, std::int64_t batch,
                          std::vector<Argument> args);

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

/// Multiplications and additions of an m × k by k × n matrix product in the methods that are known
/// to do the fewest: of each level of Strassen's, 7 products of 8 are left, and its further
/// additions are not counted. Levels are taken while blocks stay at 512 or more in every direction,
/// which is further than anybody has gained time by: three at 4096, 67% of the definition's. What
/// newer schemes of 4 × 4 blocks save beyond two levels, 1 product of 49, is less than a level.
std::int64_t fewest_product_operations(std::int64_t m, std::int64_t n, std::int64_t k);

/// Bytes of every tensor, each moved once.
std::int64_t bytes_moved_once(const std::vector<Tensor>& tensors);

}  // namespace rekernel
