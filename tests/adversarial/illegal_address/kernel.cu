extern "C" __global__ void softmax(const float* x, float* y) {
  y[threadIdx.x] = *(volatile float*)16;
}
