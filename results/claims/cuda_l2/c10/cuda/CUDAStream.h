// See torch/extension.h: work goes into the default stream.
#pragma once
#include <cuda_runtime.h>
namespace c10::cuda {
inline cudaStream_t getCurrentCUDAStream() { return nullptr; }
}  // namespace c10::cuda
