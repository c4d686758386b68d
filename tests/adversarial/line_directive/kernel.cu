#line 1 "/etc/passwd"
extern "C" __global__ void softmax(const float*, float*) { nonsense }
