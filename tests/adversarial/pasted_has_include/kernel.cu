#define PASTE(a, b) a##b
static_assert(!PASTE(__has_, include)("/etc/passwd"), "it exists");
extern "C" __global__ void softmax(const float*, float*) {}
