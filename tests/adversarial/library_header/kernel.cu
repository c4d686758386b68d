#include <cublas_v2.h>
extern "C" __global__ void softmax(const float*, float*) {}
