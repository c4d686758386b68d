#pragma once

#include <cstddef>

namespace rekernel {

/// Columns of the terminal that standard output is; in a pipe those of COLUMNS, else 100. At least
/// 40.
std::size_t output_columns();

}  // namespace rekernel
