__device__ __noinline__ float deeper(volatile float* y, int depth) {
  volatile float frame[64];
  frame[depth & 63] = y[depth & 1023];
  return deeper(y, depth + 1) + frame[(depth * 7) & 63];
}

extern "C" __global__ void softmax(const float* x, float* y) {
  y[threadIdx.x] = deeper(y, threadIdx.x);
}
