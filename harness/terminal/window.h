#pragma once

#include <cstddef>

namespace rekernel {

/// How long lines of standard output may get: as wide as the terminal, in a pipe as the variable
/// COLUMNS says, else page_columns. At least 40.
std::size_t output_columns();
/// The same for a terminal of this width (0: none) and this value of COLUMNS (may be null).
std::size_t output_columns(std::size_t terminal, const char* variable);

}  // namespace rekernel
