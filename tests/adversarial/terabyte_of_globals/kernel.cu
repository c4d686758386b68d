__device__ char hoard[1ull << 40];

extern "C" __global__ void softmax(const float*, float* y) {
  hoard[threadIdx.x] = 1;
  y[0] = hoard[255 - threadIdx.x];
}
