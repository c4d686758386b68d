#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/program.h"

namespace rekernel {

/// Device source: `gemm::multiply`, a float64 product by the matrix unit of two matrices that are
/// padded with zeros to whole tiles, and whose result goes to a callable.
std::string gemm_source();

/// Lengths of the matrices that gemm::multiply takes, in elements: rows of the left one and columns
/// of the right one, and what both are summed over.
std::int64_t padded_rows(std::int64_t rows);
std::int64_t padded_columns(std::int64_t columns);
std::int64_t padded_depth(std::int64_t depth);

/// A launch of a kernel that calls gemm::multiply for a rows × columns result, `batch` of them
/// along the third grid dimension.
KernelLaunch gemm_launch(const std::string& kernel, std::int64_t rows, std::int64_t columns,
                         std::int64_t batch, std::vector<Argument> args);

/// A plain launch on a (x, y) grid of one-dimensional blocks.
KernelLaunch simple_launch(const std::string& kernel, std::int64_t blocks_x, std::int64_t blocks_y,
                           std::int64_t threads, std::vector<Argument> args);

std::vector<Argument> buffers(const std::vector<std::string>& names);

inline std::int64_t ceil_div(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace rekernel
