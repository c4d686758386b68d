extern "C" __global__ void compare_f32(const float*, const double*, unsigned long long, double, double,
                                       double, double, void*) {}
extern "C" __global__ void count_other_bytes(const unsigned char*, unsigned long long, unsigned,
                                             unsigned long long*) {}
extern "C" __global__ void softmax(const float*, float*) {}
