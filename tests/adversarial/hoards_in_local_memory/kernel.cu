extern "C" __global__ void softmax(const float* x, float* y) {
  float own[32768];
  for (int i = 0; i < 32768; ++i) own[i] = x[i];
  y[threadIdx.x] = own[static_cast<int>(x[threadIdx.x]) & 32767];
}
