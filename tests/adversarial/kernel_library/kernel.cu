#include <cub/cub.cuh>
extern "C" __global__ void softmax(const float*, float*) {}
