#pragma once

#include <memory>

#include "reference/cudnn.h"
#include "reference/shapes.h"

namespace rekernel {

/// The classic call, from x to y; throws std::runtime_error with what the library refuses.
std::unique_ptr<Runnable> pooling_call(const std::shared_ptr<const Cudnn>& cudnn,
                                       const Pooling& pooling, CUdeviceptr x, CUdeviceptr y);

}  // namespace rekernel
