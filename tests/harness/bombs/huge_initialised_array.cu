// Sixteen gigabytes that the machine code would have to hold.
__device__ int boom[1LL << 32] = {1};
extern "C" __global__ void k(int* x) { *x = boom[*x]; }
