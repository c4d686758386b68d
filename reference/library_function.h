#pragma once

#include "harness/export/export.h"
#include "ops/problem.h"

namespace rekernel {

/// What the test of an exported kernel compares with. Throws where a problem has no library
/// function.
LibraryFunction library_function(const Problem& problem);

}  // namespace rekernel
