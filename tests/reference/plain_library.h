#pragma once

#include "reference/shapes.h"

namespace rekernel {

/// What a library computes for a shape, by plain loops over the strides and extents that the call
/// gets: the output alone.
std::vector<double> plain_library(const LibraryShape& shape, const HostInputs& inputs);

}  // namespace rekernel
