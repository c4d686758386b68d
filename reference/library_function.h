#pragma once

#include "harness/export/export.h"
#include "ops/problem.h"

namespace rekernel {

/// What the test of an exported kernel compares with: PyTorch's expression, and in C++ the
/// libraries that solve the published problems.
LibraryFunction library_function(const Problem& problem);

}  // namespace rekernel
