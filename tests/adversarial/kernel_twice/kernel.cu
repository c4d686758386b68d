extern "C" __global__ void softmax(const float*, float*) {}
namespace other {
extern "C" __global__ void softmax(const float*, float* y) { y[0] = 1.0f; }
}
