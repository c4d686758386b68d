#include <cuda/std/cstdint>
#if _CCCL_HAS_INCLUDE("/etc/passwd")
#error it exists
#endif
extern "C" __global__ void softmax(const float*, float*) {}
