extern "C" __global__ void softmax(const float*, float*) {}
